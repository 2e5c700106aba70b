// Why a context ended: found by one rank, told to all, thrown by everyone.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

// Immutable once shared; thread-safe.
struct Cause {
  enum class Kind : uint8_t {
    kIo = 0,        // IoException
    kTimeout = 1,   // TimeoutException
    kPeerLost = 2,  // PeerLostException
    kMismatch = 3,  // MismatchException
    kRendezvous = 4,
    kClosed = 5,  // closed on this side, or the peer left in order
  };

  Kind kind = Kind::kIo;
  // The rank that found it, and the rank that caused it; -1: unknown.
  int32_t foundBy = -1;
  int32_t culprit = -1;
  // What happened, with errno or completion status; at most kMaxText bytes
  // travel.
  std::string text;
  // Of the collective that was waited for, where it was one. Does not travel.
  std::optional<uint64_t> slot{};

  static constexpr size_t kMaxText = 1024;
};

using CausePtr = std::shared_ptr<const Cause>;

// A cause that says no more than that; takes no memory.
GLOO_API CausePtr outOfMemory() noexcept;

// What `make` returns; where there is no memory for that, outOfMemory(): what
// fails a context must not fail itself.
template <typename Make>
CausePtr makeCause(const Make& make) {
  try {
    return std::make_shared<const Cause>(make());
  } catch (const std::bad_alloc&) {
    return outOfMemory();
  }
}

// Throws the exception class of cause.kind; `operation` says what this rank
// was doing ("rank 1: allreduce tag 7: recv from rank 2, 0 of 4096 bytes").
[[noreturn]] GLOO_API void throwCause(const Cause& cause,
                                      const std::string& operation);

// "rank 3", "ranks 3, 5-7"; they ascend.
GLOO_API std::string listRanks(const std::vector<int>& ranks);

}  // namespace internal
GLOO_NAMESPACE_END
