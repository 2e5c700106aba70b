// What tests of the progress domain poll.
#pragma once

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>

#include "gloo/config.h"
#include "transport/base/progress.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// Only reached when something is broken.
inline Deadline never() { return Deadline::after(std::chrono::seconds(10)); }

template <typename Condition>
bool eventually(const Condition& condition) {
  const Deadline limit = never();
  while (!condition()) {
    if (limit.expired()) {
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}

// Counts what is given to it from any thread; take() happens in poll.
// Its descriptor is readable as long as there is anything, or once after it was
// armed; or it has a word for that, too.
enum class Tells { kOnce, kLevel, kByWord };

class FakePoller : public Poller {
 public:
  explicit FakePoller(Tells tells = Tells::kOnce)
      : tells_(tells), fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

  // From any thread, without the lock: as a peer would.
  void arrive() {
    arrived_.fetch_add(1);
    const uint32_t how = armed_.exchange(kNot);
    if (how == kByWord) {
      wakeShared(armed_);
    } else if (tells_ == Tells::kLevel || how == kByDescriptor) {
      makeReadable();
    }
  }
  // What only the descriptor tells of, as the end of a peer.
  void arriveAside() {
    arrived_.fetch_add(1);
    makeReadable();
  }

  bool poll() override {
    polls++;
    EXPECT_FALSE(inPoll_.exchange(true)) << "two drivers at once";
    uint64_t count = 0;
    [[maybe_unused]] const auto rv = read(fd_.get(), &count, sizeof(count));
    const int n = arrived_.exchange(0);
    taken += n;
    inPoll_ = false;
    return n > 0;
  }
  int wakeFd() const override { return fd_.get(); }
  bool arm() override {
    arms++;
    armed_ = kByDescriptor;
    return arrived_ > 0;
  }
  std::optional<size_t> wordsToArm() const override {
    return tells_ == Tells::kByWord ? std::optional<size_t>(words)
                                    : std::nullopt;
  }
  bool armWords(FutexWords& all) override {
    wordArms++;
    armed_ = kByWord;
    all.add(armed_, kByWord, true);
    return arrived_ > 0;
  }
  std::chrono::milliseconds nextTimer() const override { return timer; }

  std::atomic<int> polls{0};
  std::atomic<int> arms{0};
  std::atomic<int> taken{0};
  std::atomic<int> wordArms{0};
  size_t words = 1;
  std::chrono::milliseconds timer = std::chrono::milliseconds::max();

 private:
  enum : uint32_t { kNot, kByDescriptor, kByWord };

  void makeReadable() {
    const uint64_t one = 1;
    ASSERT_EQ(write(fd_.get(), &one, sizeof(one)), ssize_t{sizeof(one)});
  }

  const Tells tells_;
  UniqueFd fd_;
  std::atomic<int> arrived_{0};
  std::atomic<uint32_t> armed_{kNot};
  std::atomic<bool> inPoll_{false};
};

}  // namespace transport::base
GLOO_NAMESPACE_END
