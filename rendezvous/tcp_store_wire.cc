#include "rendezvous/tcp_store_wire.h"

#include "gloo/common/string.h"
#include "gloo/rendezvous/tcp_store.h"
#include "rendezvous/bytes.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous::tcpstore {

namespace {

bool hasValues(Op op) { return op == Op::kSet || op == Op::kAppend; }

}  // namespace

std::optional<Header> decodeHeader(std::span<const char> bytes,
                                   size_t maxBodyBytes) {
  ByteReader in(bytes.first(kHeaderBytes));
  const uint32_t magic = in.u32();
  Header header;
  header.version = in.u8();
  header.op = in.u8();
  const uint16_t zero = in.u16();
  header.id = in.u32();
  header.bodyBytes = in.u32();
  if (magic != kMagic || zero != 0 || header.bodyBytes > maxBodyBytes) {
    return std::nullopt;
  }
  return header;
}

std::vector<char> encodeFrame(uint8_t op, uint32_t id,
                              std::span<const char> body) {
  std::vector<char> frame;
  frame.reserve(kHeaderBytes + body.size());
  ByteWriter out(frame);
  out.u32(kMagic);
  out.u8(kVersion);
  out.u8(op);
  out.u16(0);
  out.u32(id);
  out.u32(static_cast<uint32_t>(body.size()));
  out.raw(body);
  return frame;
}

std::vector<char> encodeRequest(const Request& request) {
  std::vector<char> body;
  ByteWriter out(body);
  if (request.op == Op::kWaitAny) {
    out.u32(request.milliseconds);
  } else if (request.op == Op::kAdd) {
    out.u64(static_cast<uint64_t>(request.increment));
  }
  out.u32(static_cast<uint32_t>(request.keys.size()));
  for (size_t i = 0; i < request.keys.size(); i++) {
    out.text(request.keys[i]);
    if (hasValues(request.op)) {
      out.text(request.values[i]);
    }
  }
  return body;
}

std::optional<Request> decodeRequest(uint8_t op, std::span<const char> body,
                                     std::string* why) {
  if (op < static_cast<uint8_t>(Op::kSet) ||
      op > static_cast<uint8_t>(Op::kAdd)) {
    *why = MakeString("unknown request ", int{op});
    return std::nullopt;
  }
  ByteReader in(body);
  Request request;
  request.op = static_cast<Op>(op);
  if (request.op == Op::kWaitAny) {
    request.milliseconds = in.u32();
  } else if (request.op == Op::kAdd) {
    request.increment = static_cast<int64_t>(in.u64());
  }
  const uint32_t count = in.u32();
  const bool fits = count <= in.left() / sizeof(uint32_t);  // their lengths
  if (fits && count > TcpStoreServer::kMaxRequestKeys) {
    *why = MakeString("a request has more than ",
                      TcpStoreServer::kMaxRequestKeys, " keys");
    return std::nullopt;
  }
  for (uint32_t i = 0; i < count && in.ok(); i++) {
    request.keys.push_back(toString(in.text()));
    if (hasValues(request.op)) {
      request.values.push_back(toVector(in.text()));
    }
    if (request.keys.back().size() > TcpStoreServer::kMaxKeyBytes) {
      *why = MakeString("a key is longer than ", TcpStoreServer::kMaxKeyBytes,
                        " bytes");
      return std::nullopt;
    }
  }
  const bool single = request.op == Op::kAppend || request.op == Op::kAdd;
  if (!in.ok() || in.left() != 0 || (single && request.keys.size() != 1)) {
    *why = "malformed request";
    return std::nullopt;
  }
  return request;
}

}  // namespace rendezvous::tcpstore
GLOO_NAMESPACE_END
