// The frames that have not yet gone into the ring, in order. Entries, and their
// copies of small payloads, are reused. One thread.
#pragma once

#include <cstddef>
#include <vector>

#include "gloo/config.h"
#include "transport/base/wire.h"
#include "transport/shm/record.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

class FrameQueue {
 public:
  struct Frame {
    base::FrameHeader header;
    const char* payload = nullptr;
    void* token = nullptr;
    FrameProgress progress;
    std::vector<char> copy;
  };

  bool empty() const { return count_ == 0; }
  Frame& front() { return at(0); }
  void pop() {
    first_++;
    count_--;
  }

  // The payload is borrowed when there is a token, else copied.
  void push(const base::FrameHeader& header, const char* payload, void* token,
            FrameProgress progress);

  // Drops all frames but one that has begun, whose payload is copied.
  void dropUnbegun();
  void clear() { count_ = 0; }

 private:
  Frame& at(size_t i) { return ring_[(first_ + i) & (ring_.size() - 1)]; }

  std::vector<Frame> ring_ = std::vector<Frame>(16);  // a power of two
  size_t first_ = 0;
  size_t count_ = 0;
};

}  // namespace transport::shm
GLOO_NAMESPACE_END
