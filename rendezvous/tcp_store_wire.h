// The protocol of the TCP store: requests and answers in frames.
//
//   0  u32 magic      16 bytes of header, little-endian
//   4  u8  version
//   5  u8  op         of a request, or the Status of its answer
//   6  u16 zero
//   8  u32 id         chosen by the client, repeated in the answer
//  12  u32 bodyBytes
//
// One request at a time on a connection. Bodies are lists: u32 count, then for
// each item u32 length and the bytes.
//   kSet      key, value, key, value, ...        -> empty
//   kPeek     keys       -> for each: u8 exists, u32 length, value
//   kWaitAny  u32 milliseconds, keys             -> u8 whether one exists
//   kAppend   key, value                         -> empty
//   kAdd      u64 increment (two's complement), key, -> u64 sum
// An error's body is its text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gloo/config.h"
#include "gloo/rendezvous/tcp_store.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous::tcpstore {

constexpr uint32_t kMagic = 0x53544C47;  // "GLTS"
constexpr uint8_t kVersion = 1;
constexpr size_t kHeaderBytes = 16;
// All that a store can hold, asked for with the longest request.
constexpr size_t kMaxAnswerBytes =
    TcpStoreServer::kMaxStoredBytes + TcpStoreServer::kMaxRequestBytes;
static_assert(kMaxAnswerBytes < TcpStoreServer::kMaxHeldBytes);

enum class Op : uint8_t {
  kSet = 1,
  kPeek = 2,
  kWaitAny = 3,
  kAppend = 4,
  kAdd = 5,
};
enum class Status : uint8_t { kOk = 0, kError = 1 };

struct Header {
  uint8_t version = kVersion;
  uint8_t op = 0;
  uint32_t id = 0;
  uint32_t bodyBytes = 0;
};

// Nothing if the bytes (at least kHeaderBytes) are not a header, whatever its
// version, or announce more than `maxBodyBytes`.
std::optional<Header> decodeHeader(std::span<const char> bytes,
                                   size_t maxBodyBytes);

std::vector<char> encodeFrame(uint8_t op, uint32_t id,
                              std::span<const char> body);

struct Request {
  Op op = Op::kSet;
  uint32_t milliseconds = 0;
  int64_t increment = 0;
  std::vector<std::string> keys;
  std::vector<std::vector<char>> values;  // kSet, kAppend: one for each key
};

std::vector<char> encodeRequest(const Request& request);

// Nothing, and *why, if the body is not a request of this op.
std::optional<Request> decodeRequest(uint8_t op, std::span<const char> body,
                                     std::string* why);

}  // namespace rendezvous::tcpstore
GLOO_NAMESPACE_END
