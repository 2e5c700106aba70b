// The events of a simulation, in the order of their time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "algorithms/simulate/links.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::simulate {

enum class EventKind : uint8_t {
  kWorked,  // a rank's processor has done its part of an action
  kSent,    // the last byte of a message has left its sender
  kArrive,  // and would be at its receiver, if nothing held it up
  kLand,    // and is there
  kTurn,    // a rank may have its processor
};

struct Event {
  Tick time = 0;
  uint64_t order = 0;      // of equal times the first that was made
  uint32_t number = 0;     // of the action, the message, or the turn
  uint32_t rank : 29 = 0;  // whose action or turn; else unused
  EventKind kind : 3 = EventKind::kWorked;

  bool before(const Event& other) const {
    return time != other.time ? time < other.time : order < other.order;
  }
};

// A heap of four children per node: half as deep as a binary one, and those
// that are compared lie together. One thread.
class Events {
 public:
  bool empty() const { return heap_.empty(); }

  void push(Event event) {
    event.order = made_++;
    size_t at = heap_.size();
    heap_.push_back(event);
    while (at > 0 && event.before(heap_[(at - 1) / 4])) {
      heap_[at] = heap_[(at - 1) / 4];
      at = (at - 1) / 4;
    }
    heap_[at] = event;
  }

  // The first; there is one.
  Event pop() {
    const Event first = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    size_t at = 0;
    while (4 * at + 1 < heap_.size()) {
      const size_t begin = 4 * at + 1;
      const size_t end = std::min(begin + 4, heap_.size());
      size_t least = begin;
      for (size_t i = begin + 1; i < end; i++) {
        least = heap_[i].before(heap_[least]) ? i : least;
      }
      if (!heap_[least].before(last)) {
        break;
      }
      heap_[at] = heap_[least];
      at = least;
    }
    if (!heap_.empty()) {
      heap_[at] = last;
    }
    return first;
  }

 private:
  std::vector<Event> heap_;
  uint64_t made_ = 0;
};

}  // namespace algorithms::simulate
GLOO_NAMESPACE_END
