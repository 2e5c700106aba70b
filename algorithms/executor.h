// Performs a program on a channel: posts messages as soon as what they wait for
// is done, reduces segments as they arrive, all under one deadline.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/program.h"
#include "algorithms/reducer.h"
#include "gloo/internal/channel.h"
#include "gloo/internal/options.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// One run of a program. Borrows everything until the run has returned.
struct Run {
  internal::Channel* channel = nullptr;
  std::array<char*, kMemories> memory{};  // kInput is only read
  // What each is of: the caller's vector, or all of the scratch memory.
  std::array<internal::MemoryRange, kMemories> within{};
  // Where the input's blocks of `inputBlockBytes` are not one after the other:
  // a pointer to each. The program's actions read at most one at a time.
  const void* const* inputBlocks = nullptr;
  size_t inputBlockBytes = 0;
  Reducer reduce;
  // Reduced into the output before anything else, as the rank's contribution;
  // null: it is there.
  const internal::Vectors* own = nullptr;
  uint64_t slot = 0;
  uint64_t check = 0;
  // Of the word; null: none are known.
  const internal::CheckDetails* details = nullptr;
  std::chrono::milliseconds timeout{0};  // of all of it
  std::chrono::milliseconds left{0};     // of that, where there is no deadline
  std::optional<Deadline> deadline;
  // For the texts of errors.
  std::string_view collective;
  std::string_view algorithm;
  uint32_t tag = 0;
};

// Of what posts nothing at once: not on a context that has failed. Throws its
// cause.
void refuseFailed(internal::Channel& channel, std::string_view collective,
                  uint32_t tag);

// Of a call that ends with an exception, and on which others may wait: fails
// the context, unless it has failed. `text` is asked for then.
template <typename Text>
void abandon(internal::Channel& channel, const Text& text) noexcept {
  try {
    if (channel.failure() == nullptr) {
      channel.fail(internal::makeCause([&] {
        const int me = channel.rank();
        return internal::Cause{internal::Cause::Kind::kIo, me, me, text()};
      }));
    }
  } catch (...) {
    // It has failed, or is gone: the caller has an exception already.
  }
}

// One thread at a time. run() allocates nothing unless it fails.
class Executor {
 public:
  // Borrows the program, whose window is at most kMaxWindow.
  explicit Executor(const Program& program);

  // Returns when all actions are done. On a context that has failed before, no
  // memory is changed. Throws TimeoutException at the deadline,
  // the context's cause when it has failed, and what a reduce function throws;
  // in each case, also where memory is short, the context has failed and no
  // operation is in flight.
  void run(const Run& run);

  // Of a run before which there is something to do. None if it is so brief that
  // its time may begin with its first wait.
  std::optional<Deadline> deadlineAfter(std::chrono::milliseconds left) const {
    return brief_ ? std::nullopt : std::optional(Deadline::after(left));
  }

  static constexpr int kMaxWindow = 64;

 private:
  enum State : uint8_t { kWaiting, kStarted, kDone };
  using Operation = internal::Operation;

  void refuseFailed() const {
    algorithms::refuseFailed(*run_->channel, run_->collective, run_->tag);
  }
  void reduceOwn();
  void lookAtTime();
  bool sweep();
  bool sweepReceives(size_t end);
  void wait();
  // Whether it need not wait, once `starting` has started.
  bool ready(const Action& action, int64_t starting = -1) const;
  bool sendFollows(size_t index, size_t end) const;
  void start(size_t index, const Action& action, bool more);
  void perform(const Action& action);
  void reduce(const Action& action);
  bool finish(size_t index, const Action& action);
  bool anyEnded() const;

  Operation& operation(size_t index) const {
    return operations_[index & mask_];
  }
  char* at(Place place) const {
    if (place.memory == Memory::kInput && run_->inputBlocks != nullptr) {
      return inputBlock(place.offset);
    }
    return run_->memory[static_cast<size_t>(place.memory)] + place.offset;
  }
  internal::MemoryRange within(Place place) const {
    if (place.memory == Memory::kInput && run_->inputBlocks != nullptr) {
      const size_t bytes = run_->inputBlockBytes;
      return {inputBlock(place.offset / bytes * bytes), bytes};
    }
    return run_->within[static_cast<size_t>(place.memory)];
  }
  char* inputBlock(size_t offset) const;
  uint64_t checkOf(const Action& action) const;

  [[noreturn]] void throwTimeout();
  [[noreturn]] void throwShort(const Action& action, const Operation& op);
  [[noreturn]] void fail(internal::Cause::Kind kind, int culprit,
                         std::string text);
  // The action that the run is stuck at, and how far that has come.
  struct Stuck {
    size_t index = 0;
    size_t bytesDone = 0;
  };
  Stuck stuck() const;
  size_t firstOpen() const;
  std::string describe(const Stuck& at) const;
  void abandon(const Stuck& at, const char* why) noexcept;

  const Program& program_;
  const size_t window_;
  const size_t mask_;      // the operation of action i is number i & mask_
  const bool brief_;       // the time begins with the first wait that takes any
  const bool postsFirst_;  // of a context that has failed, that tells
  std::vector<State> states_;
  std::unique_ptr<Operation[]> operations_;
  const std::function<bool()> ready_;
  const Run* run_ = nullptr;
  std::optional<Deadline> deadline_;
  size_t head_ = 0;  // first action that is not done
  uint64_t inFlight_ =
      0;  // bit i: operations_[i] was posted and not yet reaped
};

}  // namespace algorithms
GLOO_NAMESPACE_END
