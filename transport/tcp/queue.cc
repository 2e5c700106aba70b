#include "transport/tcp/queue.h"

#include <algorithm>
#include <utility>

GLOO_NAMESPACE_BEGIN
namespace transport::tcp {

using base::FrameHeader;

void FrameQueue::push(const FrameHeader& header, const char* payload,
                      void* token, bool copy, size_t sent) {
  if (count_ == ring_.size()) {
    grow();
  }
  Frame& frame = at(count_);
  base::encode(header, frame.head.data());
  frame.total = FrameHeader::kBytes + header.payloadBytes;
  frame.sent = sent;
  frame.token = token;
  frame.payload = payload;
  if (copy) {
    frame.copy.assign(payload, payload + header.payloadBytes);
    frame.payload = frame.copy.data();
  }
  count_++;
}

size_t FrameQueue::gather(std::array<iovec, kMaxParts>& parts,
                          size_t limit) const {
  size_t n = 0;
  const auto add = [&](const char* from, size_t bytes) {
    bytes = std::min(bytes, limit);
    if (bytes > 0) {
      parts[n++] = {const_cast<char*>(from), bytes};  // writev(2) only reads
      limit -= bytes;
    }
  };
  for (size_t i = 0; i < count_ && limit > 0 && n + 2 <= kMaxParts; i++) {
    const Frame& frame = at(i);
    const size_t head = std::min(frame.sent, FrameHeader::kBytes);
    add(frame.head.data() + head, FrameHeader::kBytes - head);
    const size_t body = frame.sent - head;
    add(frame.payload + body, frame.total - FrameHeader::kBytes - body);
  }
  return n;
}

void FrameQueue::take(size_t n, std::vector<void*>& completed) {
  while (n > 0) {
    Frame& frame = at(0);
    const size_t part = std::min(n, frame.total - frame.sent);
    frame.sent += part;
    n -= part;
    if (frame.sent < frame.total) {
      return;
    }
    first_++;
    count_--;
    if (frame.token != nullptr) {
      completed.push_back(frame.token);
    }
  }
}

void FrameQueue::dropUnbegun() {
  if (count_ == 0 || at(0).sent == 0) {
    clear();
    return;
  }
  Frame& frame = at(0);
  const size_t payloadBytes = frame.total - FrameHeader::kBytes;
  if (frame.payload != frame.copy.data()) {
    frame.copy.assign(frame.payload, frame.payload + payloadBytes);
    frame.payload = frame.copy.data();
  }
  frame.token = nullptr;
  count_ = 1;
}

void FrameQueue::clear() { count_ = 0; }

void FrameQueue::grow() {
  std::vector<Frame> bigger(std::max<size_t>(16, 2 * ring_.size()));
  for (size_t i = 0; i < count_; i++) {
    Frame& old = at(i);
    const bool copied = old.payload == old.copy.data();
    bigger[i] = std::move(old);
    if (copied) {
      bigger[i].payload = bigger[i].copy.data();
    }
  }
  ring_ = std::move(bigger);
  first_ = 0;
}

}  // namespace transport::tcp
GLOO_NAMESPACE_END
