// Memory of the shared allocator that the two ends of a link have lent each
// other: a message out of it is copied from where it lies, without the kernel.
// It is lent over the link's socket, between the bytes that wake the peer, and
// taken when the socket is next looked at; until then, and whatever goes wrong,
// the kernel reads those bytes as it reads others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gloo/config.h"
#include "transport/base/shared_allocations.h"
#include "transport/base/socket.h"
#include "transport/shm/allocation.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

// Under the domain's lock. The socket is the link's, non-blocking.
class Loans {
 public:
  // The peer is about to read these bytes of ours: it gets the allocation that
  // they lie in, unless it has it.
  void lend(int socket, const char* data, size_t bytes);

  // Takes what has come on the socket. False: the peer is gone.
  bool receive(int socket);

  // Where these bytes of the peer's memory are mapped here; null: nowhere.
  // They may be copied before the next call of receive(), but count only if
  // the memory is there afterwards, too.
  //
  // kCurrent: what is mapped is what the peer sees. kThere: the same, for bytes
  // that were announced before an operation of the peer's that failed took the
  // allocation back: they stay as they were.
  enum class State : uint8_t { kCurrent, kThere };
  const char* find(uint64_t remote, size_t bytes,
                   State state = State::kCurrent) const;

 private:
  // What a descriptor is sent with, behind one byte that tells it from a ring.
  struct Notice {
    uint64_t id;
    uint64_t address;  // of its first byte, in its owner
  };
  static constexpr size_t kNoticeBytes = 1 + sizeof(Notice);
  struct Borrowed {
    uint64_t address;
    std::shared_ptr<const Allocation> allocation;
  };

  bool sendNotice(int socket, int descriptor, const Notice& notice);
  void onByte(char byte);
  void borrow(const Notice& notice);

  base::SharedAllocations::Range looked_;  // up last
  std::vector<uint64_t> lent_;
  uint64_t fullAt_ = 0;  // looked_.version when all of them were there still
  std::vector<Borrowed> borrowed_;
  std::array<char, kNoticeBytes> notice_{};  // of which have come
  size_t noticeBytes_ = 0;
  base::UniqueFd memory_;
};

}  // namespace transport::shm
GLOO_NAMESPACE_END
