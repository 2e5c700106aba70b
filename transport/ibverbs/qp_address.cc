#include "transport/ibverbs/qp_address.h"

#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <cstring>
#include <ios>

#include "gloo/common/error.h"
#include "transport/base/wire.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {
namespace {

constexpr uint32_t k24Bits = 0xffffff;

void put(std::vector<char>& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) {
    out.push_back(static_cast<char>(value >> (8 * i)));
  }
}

uint64_t get(const std::vector<char>& in, size_t at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; i++) {
    value |= uint64_t{static_cast<uint8_t>(in[at + static_cast<size_t>(i)])}
             << (8 * i);
  }
  return value;
}

bool possible(const QpAddress& a) {
  return a.mtu >= IBV_MTU_256 && a.mtu <= IBV_MTU_4096 && a.qpn != 0 &&
         a.qpn <= k24Bits && a.psn <= k24Bits && a.receives > 0 &&
         a.creditBytes >= a.eagerBytes &&
         a.maxMessage >= QpAddress::kLeastMaxMessage &&
         a.eagerBytes <= base::kMaxDataPayload && a.gidType <= GidType::kRoce2;
}

}  // namespace

std::string QpAddress::str() const {
  char text[INET6_ADDRSTRLEN] = "?";
  inet_ntop(AF_INET6, gid.data(), text, sizeof(text));
  std::ostringstream out;
  out << "lid " << lid << ", qpn 0x" << std::hex << qpn << ", psn 0x" << psn;
  return global ? out.str() + ", gid " + text : out.str();
}

std::vector<char> encode(const QpAddress& address) {
  std::vector<char> out;
  put(out, address.lid, 2);
  put(out, address.mtu, 1);
  put(out, address.global ? 1 : 0, 1);
  put(out, address.qpn, 4);
  put(out, address.psn, 4);
  out.insert(out.end(), address.gid.begin(), address.gid.end());
  put(out, address.receives, 4);
  put(out, address.eagerBytes, 4);
  put(out, address.readsAtATime, 1);
  put(out, static_cast<uint8_t>(address.gidType), 1);
  put(out, address.partition, 2);
  put(out, address.creditBytes, 8);
  put(out, address.maxMessage, 8);
  return out;
}

QpAddress decodeQpAddress(const std::vector<char>& bytes) {
  QpAddress address;
  if (bytes.size() >= QpAddress::kBytes) {
    address.lid = static_cast<uint16_t>(get(bytes, 0, 2));
    address.mtu = static_cast<uint8_t>(get(bytes, 2, 1));
    address.global = get(bytes, 3, 1) != 0;
    address.qpn = static_cast<uint32_t>(get(bytes, 4, 4));
    address.psn = static_cast<uint32_t>(get(bytes, 8, 4));
    std::memcpy(address.gid.data(), &bytes[12], address.gid.size());
    address.receives = static_cast<uint32_t>(get(bytes, 28, 4));
    address.eagerBytes = static_cast<uint32_t>(get(bytes, 32, 4));
    address.readsAtATime = static_cast<uint8_t>(get(bytes, 36, 1));
    address.gidType = static_cast<GidType>(get(bytes, 37, 1));
    address.partition = static_cast<uint16_t>(get(bytes, 38, 2));
    address.creditBytes = get(bytes, 40, 8);
    address.maxMessage = get(bytes, 48, 8);
  }
  if (bytes.size() < QpAddress::kBytes || !possible(address)) {
    GLOO_THROW_IO_EXCEPTION("The peer's hello has no possible queue pair (",
                            bytes.size(), " bytes: ", address.str(),
                            "): it runs another program or is broken");
  }
  return address;
}

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
