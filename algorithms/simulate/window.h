// The part of a rank's program that the executor has in view: which actions
// wait for which. Memory does not grow with the program.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "algorithms/action_stream.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::simulate {

// Bytes [begin, end) of all memories one after the other. Empty meets nothing.
struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;

  bool meets(const Range& other) const {
    return begin < other.end && other.begin < end;
  }
};

// The same rules as expand() and the executor together: an action starts when
// it is among the first window() that are not done, when the earlier ones that
// write what it touches or touch what it writes are done, and when the message
// before it to the same peer in the same direction has started. Actions before
// the window are done, so that only those in it can be waited for. One thread.
class Window {
 public:
  Window(const Schedule& schedule, const Layouts& layouts,
         const ExpandOptions& options);

  // The first action, by its number in the program, that can start, or of
  // which arrived() has been told; or none. The window is filled first.
  std::optional<uint64_t> next();

  const Action& action(uint64_t number) const {
    return actions_[number & mask_];
  }

  // Of what next() gave; a receive is posted by that.
  void start(uint64_t number);
  // The message of a posted receive is there.
  void arrived(uint64_t number);
  // next() gave it for the second time.
  bool hasArrived(uint64_t number) const {
    return (arrived_ & bitOf(number)) != 0;
  }
  void finish(uint64_t number);

  // The first posted receive from `peer` that has no message; or none.
  std::optional<uint64_t> postedFrom(int peer) const;

  bool finished() const { return ended_ && head_ == tail_; }
  uint64_t head() const { return head_; }

 private:
  uint64_t bitOf(uint64_t number) const {
    return uint64_t{1} << (number & mask_);
  }
  // The bits of slots in the order of the program.
  uint64_t inOrder(uint64_t slots) const;
  void fill();
  void takeIn(const Action& action);
  uint64_t conflictsOf(const Action& action, size_t slot);
  void chain(const Action& action);

  ActionStream stream_;
  const uint64_t window_;
  const uint64_t mask_;
  // By slot, that is the action's number modulo their number. What is looked at
  // for every action lies together.
  std::vector<Action> actions_;
  std::vector<uint64_t> waits_;  // bit s: for the action in slot s to be done
  std::vector<Range> writes_;
  std::vector<Range> reads_;
  std::vector<Range> stages_;  // that a reduction reads as well
  // The next message to the same peer in the same direction: it starts after
  // this one. Or the slot itself.
  std::vector<uint8_t> next_;
  uint64_t head_ = 0;  // first action that is not done
  uint64_t tail_ = 0;  // first action that is not in view
  bool ended_ = false;
  // Bit s: the action in slot s
  uint64_t open_ = 0;     // is not done
  uint64_t waiting_ = 0;  // has not started
  uint64_t held_ = 0;     // follows a message that has not started
  uint64_t ready_ = 0;    // can start
  uint64_t posted_ = 0;   // is a receive without its message
  uint64_t arrived_ = 0;  // is a receive with its message
};

}  // namespace algorithms::simulate
GLOO_NAMESPACE_END
