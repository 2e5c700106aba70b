// What two ends of a queue pair tell each other before they are connected; it
// travels in the hellos (docs/wire.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gloo/config.h"
#include "transport/ibverbs/ports.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {

// Where a queue pair is.
//
//  offset 0 lid u16  2 mtu u8 (an ibv_mtu)  3 global u8  4 qpn u32  8 psn u32
//        12 gid 16 bytes
//        28 receives u32  32 eagerBytes u32  36 readsAtATime u8  37 gidType u8
//        38 partition u16  40 creditBytes u64  48 maxMessage u64
struct QpAddress {
  uint16_t lid = 0;
  uint8_t mtu = 0;
  bool global = false;  // has a GID
  uint32_t qpn = 0;     // 24 bits
  uint32_t psn = 0;     // 24 bits
  std::array<uint8_t, 16> gid{};
  GidType gidType = GidType::kInfiniBand;
  // The key of its partition. 0: unknown, or RoCE's.
  static constexpr uint16_t kFullMember = 0x8000;
  uint16_t partition = 0;

  // The limits of this end.
  uint32_t receives = 0;     // credits that the peer starts with
  uint32_t eagerBytes = 0;   // payload that fits a receive
  uint8_t readsAtATime = 0;  // RDMA reads that it answers
  uint64_t creditBytes = 0;  // see LinkCaps
  uint64_t maxMessage = 0;   // of one work request
  // Less would make a long message more requests than fit any queue.
  static constexpr uint64_t kLeastMaxMessage = 4096;

  std::string str() const;  // "lid 0, qpn 0x11, psn 0x2a, gid ::1"

  static constexpr size_t kBytes = 56;
};

std::vector<char> encode(const QpAddress& address);

// Throws IoException when the bytes are no address, or one that no device has.
// Bytes of a later version may be longer.
QpAddress decodeQpAddress(const std::vector<char>& bytes);

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
