// What a rank writes to the store: one record, O(1) bytes.
//
//   0  u32 magic "GRec"    little-endian
//   4  u8  version
//   5  u8  kind
//   6  u16 addressBytes    at most transport::Address::kMaxByteSize
//   8  u32 rank
//  12  u32 size
//  16  u64 nonce           of the writer's transport context
//  24  u32 extraBytes      at most kMaxExtraBytes
//  28  u32 checksum        FNV-1a of everything else
//  32  u64 writtenAt       microseconds since 1970, by the writer's clock
//  40  address, extra
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

struct Record {
  enum class Kind : uint8_t {
    kAddress = 0,  // extra: the profile, from rank 0; else empty
    kRefusal = 1,  // extra: why the writer gave up; replaces the other
  };

  Kind kind = Kind::kAddress;
  int rank = -1;
  int size = 0;
  uint64_t nonce = 0;
  uint64_t writtenAt = 0;  // microseconds since 1970, by the writer's clock
  std::vector<char> address;
  std::vector<char> extra;

  static constexpr size_t kHeaderBytes = 40;
  static constexpr size_t kMaxExtraBytes = size_t{64} << 10;
};

std::vector<char> encodeRecord(const Record& record);

// Nothing, and *why, if the bytes are not a whole, unaltered record of this
// version.
std::optional<Record> decodeRecord(std::span<const char> bytes,
                                   std::string* why);

// The key of a rank's record. Without what separates the parts of paths: some
// stores make files or addresses of keys (Horovod's answers to no other).
std::string recordKey(int rank);

}  // namespace rendezvous
GLOO_NAMESPACE_END
