#include "transport/shm/queue.h"

#include <utility>

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

void FrameQueue::push(const base::FrameHeader& header, const char* payload,
                      void* token, FrameProgress progress) {
  if (count_ == ring_.size()) {
    std::vector<Frame> larger(2 * ring_.size());
    for (size_t i = 0; i < count_; i++) {
      // The payload of a copy moves along: it is on the heap.
      larger[i] = std::move(at(i));
    }
    ring_ = std::move(larger);
    first_ = 0;
  }
  Frame& frame = at(count_);
  frame.header = header;
  frame.payload = payload;
  frame.token = token;
  frame.progress = progress;
  if (token == nullptr && header.payloadBytes > 0) {
    frame.copy.assign(payload, payload + header.payloadBytes);
    frame.payload = frame.copy.data();
  }
  count_++;
}

void FrameQueue::dropUnbegun() {
  if (count_ > 0 && front().progress.begun) {
    Frame& frame = front();
    if (frame.token != nullptr) {
      frame.copy.assign(frame.payload,
                        frame.payload + frame.header.payloadBytes);
      frame.payload = frame.copy.data();
      frame.token = nullptr;
    }
    count_ = 1;
  } else {
    count_ = 0;
  }
}

}  // namespace transport::shm
GLOO_NAMESPACE_END
