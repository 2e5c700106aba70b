// Memory of the caller's that can be sent to, received from, and exported to
// any rank.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "gloo/common/error.h"
#include "gloo/config.h"
#include "gloo/transport/remote_key.h"

GLOO_NAMESPACE_BEGIN
namespace transport {

// As timeout: that of the context. 0 is none; any other negative one is an
// InvalidOperationException.
constexpr std::chrono::milliseconds kUnsetTimeout(-1);

// Does not own its memory: the caller keeps it alive until the buffer is
// destroyed. Sends on one (pair, slot) match receives in the order in which
// both were started. Any number of operations may be in flight; each
// successful wait accounts for one of them, in the order of completion.
//
// Thread-safe: several threads may start operations and wait.
//
// Errors: InvalidOperationException for ranges outside the buffer and for
// ranks outside the context; IoException (TimeoutException, ...) when the
// operation fails. After a wait has thrown, nobody writes to the memory.
class GLOO_API UnboundBuffer {
 public:
  UnboundBuffer(void* ptr, size_t size) : ptr(ptr), size(size) {}

  // Cancels what is in flight; afterwards nobody touches the memory.
  virtual ~UnboundBuffer() = 0;

  void* const ptr;
  const size_t size;  // bytes

  // As nbytes: all bytes from `offset` to the end.
  static constexpr size_t kUnspecifiedByteCount =
      std::numeric_limits<size_t>::max();
  static constexpr std::chrono::milliseconds kUnsetTimeout =
      transport::kUnsetTimeout;

  // Each wait blocks until one send (or receive) is complete: true; until it
  // is aborted: false; or until the deadline: throws TimeoutException. The
  // rank of the peer is stored in *rank where rank is not null.
  virtual bool waitRecv(int* rank, std::chrono::milliseconds timeout) = 0;
  virtual bool waitSend(int* rank, std::chrono::milliseconds timeout) = 0;
  virtual bool waitRecv(std::chrono::steady_clock::time_point deadline) = 0;
  virtual bool waitSend(std::chrono::steady_clock::time_point deadline) = 0;

  bool waitRecv() { return waitRecv(nullptr, kUnsetTimeout); }
  bool waitRecv(int* rank) { return waitRecv(rank, kUnsetTimeout); }
  bool waitRecv(std::chrono::milliseconds timeout) {
    return waitRecv(nullptr, timeout);
  }
  bool waitSend() { return waitSend(nullptr, kUnsetTimeout); }
  bool waitSend(int* rank) { return waitSend(rank, kUnsetTimeout); }
  bool waitSend(std::chrono::milliseconds timeout) {
    return waitSend(nullptr, timeout);
  }

  // The same with another clock's deadline: callers have system_clock's.
  template <typename Clock, typename Duration>
  bool waitRecv(std::chrono::time_point<Clock, Duration> deadline) {
    return waitRecv(toSteady(deadline));
  }
  template <typename Clock, typename Duration>
  bool waitSend(std::chrono::time_point<Clock, Duration> deadline) {
    return waitSend(toSteady(deadline));
  }

  // Make the current wait, or the next one, return false. Not an error: the
  // context stays usable.
  virtual void abortWaitRecv() = 0;
  virtual void abortWaitSend() = 0;

  // Start a send of [offset, offset + nbytes) to rank dstRank; its bytes may
  // be changed after waitSend.
  virtual void send(int dstRank, uint64_t slot, size_t offset = 0,
                    size_t nbytes = kUnspecifiedByteCount) = 0;

  // Start a receive into [offset, offset + nbytes) from srcRank, or from
  // whichever of srcRanks sends first (beside others, the own rank is passed
  // over). A shorter message is received; a longer one is an error on both
  // sides.
  virtual void recv(int srcRank, uint64_t slot, size_t offset = 0,
                    size_t nbytes = kUnspecifiedByteCount) = 0;
  virtual void recv(std::vector<int> srcRanks, uint64_t slot, size_t offset = 0,
                    size_t nbytes = kUnspecifiedByteCount) = 0;

  // Export the whole buffer for put and get by other ranks; memory that this
  // process may only read, for get alone.
  virtual std::unique_ptr<RemoteKey> getRemoteKey() const = 0;
  // The same, or for one of the two: the other one then throws
  // InvalidOperationException where it is called with such a key, and no byte
  // moves. Keys for different uses may be had of one buffer. kWrite of memory
  // that this process may only read is an IoException.
  virtual std::unique_ptr<RemoteKey> getRemoteKey(RemoteAccess access) const {
    if (access != RemoteAccess::kReadWrite) {
      GLOO_THROW_INVALID_OPERATION_EXCEPTION(
          "getRemoteKey: keys of this transport are for put and get");
    }
    return getRemoteKey();
  }

  // Write to, or read from, the memory behind `key`. Wait for both with
  // waitSend: then the bytes are in the target's memory, or, of a get, in this
  // buffer.
  virtual void put(const RemoteKey& key, uint64_t slot, size_t offset,
                   size_t roffset, size_t nbytes) = 0;
  virtual void get(const RemoteKey& key, uint64_t slot, size_t offset,
                   size_t roffset, size_t nbytes) = 0;

 private:
  template <typename Clock, typename Duration>
  static std::chrono::steady_clock::time_point toSteady(
      std::chrono::time_point<Clock, Duration> deadline) {
    using Steady = std::chrono::steady_clock;
    // The extremes of a clock cannot be told from now in any integer.
    using Seconds = std::chrono::duration<long double>;
    constexpr Seconds kFar = std::chrono::hours(24 * 365 * 10);
    const Seconds left = Seconds(deadline.time_since_epoch()) -
                         Seconds(Clock::now().time_since_epoch());
    if (left > kFar) {
      return Steady::time_point::max();  // never
    }
    return Steady::now() + std::chrono::duration_cast<Steady::duration>(
                               left > -kFar ? left : -kFar);
  }
};

}  // namespace transport
GLOO_NAMESPACE_END
