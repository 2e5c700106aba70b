// The frames that a link has not yet handed to the kernel, in order. A ring
// whose entries, and their copies of small payloads, are reused: nothing is
// allocated once it has grown to what the traffic needs. One thread.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <vector>

#include "gloo/config.h"
#include "transport/base/wire.h"

GLOO_NAMESPACE_BEGIN
namespace transport::tcp {

class FrameQueue {
 public:
  // Entries of an iovec that gather() fills at most.
  static constexpr size_t kMaxParts = 64;

  bool empty() const { return count_ == 0; }

  // Of the frame's bytes (head, then payload), the first `sent` have left
  // already. With `copy` the payload is copied, else it is borrowed until
  // take() yields the token.
  void push(const base::FrameHeader& header, const char* payload, void* token,
            bool copy, size_t sent = 0);

  // What is next, at most `limit` bytes of it; returns the number of parts.
  size_t gather(std::array<iovec, kMaxParts>& parts, size_t limit) const;

  // The first `n` bytes have left: the tokens of the frames that ended are
  // appended.
  void take(size_t n, std::vector<void*>& completed);

  // Drops all frames but one that has begun to leave, whose rest is copied.
  void dropUnbegun();
  void clear();

 private:
  struct Frame {
    std::array<char, base::FrameHeader::kBytes> head;
    const char* payload = nullptr;
    size_t total = 0;  // head and payload
    size_t sent = 0;
    void* token = nullptr;
    std::vector<char> copy;
  };

  Frame& at(size_t i) { return ring_[(first_ + i) & (ring_.size() - 1)]; }
  const Frame& at(size_t i) const {
    return ring_[(first_ + i) & (ring_.size() - 1)];
  }
  void grow();

  std::vector<Frame> ring_ = std::vector<Frame>(16);  // a power of two
  size_t first_ = 0;
  size_t count_ = 0;
};

}  // namespace transport::tcp
GLOO_NAMESPACE_END
