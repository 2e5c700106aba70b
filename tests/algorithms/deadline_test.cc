// A collective has one deadline, whatever it is at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <new>
#include <thread>
#include <vector>

#include "gloo/common/error.h"
#include "gloo/internal/direct.h"
#include "gloo/types.h"
#include "tests/algorithms/ranks.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::HasSubstr;

Request requestBy(const char* algorithm, size_t count) {
  Request request;
  request.collective = Collective::kAllreduce;
  request.type = internal::ElementType::kInt64;
  request.elementSize = sizeof(int64_t);
  request.counts.count = count;
  request.forced = algorithm;
  return request;
}

Arguments inPlace(std::vector<int64_t>& data) {
  Arguments arguments;
  arguments.input = arguments.output = data.data();
  arguments.prefix = kAllreduceSlotPrefix;
  arguments.timeout = milliseconds(10000);
  return arguments;
}

void spinUntil(steady_clock::time_point at) {
  while (steady_clock::now() < at) {
    std::this_thread::yield();
  }
}

// Also where nothing is waited for any more: here at the end of the last step.
TEST(Deadline, EndsARankThatIsAtWork) {
  for (const bool ownVectors : {false, true}) {
    Ranks ranks(2);
    const auto errors = ranks.outcomes([&](int, State& state) {
      const auto end = steady_clock::now() + milliseconds(400);
      const internal::ReduceFunction late = [&](void*, const void*, const void*,
                                                size_t) { spinUntil(end); };
      std::vector<int64_t> in(100);
      std::vector<int64_t> out(100);
      internal::Vectors own;
      own.add({in.data(), 800});
      own.add({in.data(), 800});
      Request request = requestBy("recursive_doubling", 100);
      Arguments arguments;
      arguments.input = in.data();
      arguments.output = out.data();
      arguments.function = &late;
      arguments.prefix = kAllreduceSlotPrefix;
      arguments.timeout = milliseconds(300);
      if (ownVectors) {
        arguments.own = &own;
        arguments.input = out.data();
        request.inPlace = true;
      }
      state.run(request, arguments);
    });
    for (const std::exception_ptr& error : errors) {
      EXPECT_THAT(textOf(error), HasSubstr("Timed out after 300 ms"));
    }
    EXPECT_EQ(0u, ranks.world().pending());
  }
}

// Not each for itself: a rank delivers segment after segment, each in time.
TEST(Deadline, IsOfAllSegmentsTogether) {
  for (const char* algorithm : {"bcube", "ring", "halving_doubling"}) {
    Ranks ranks(4);
    const auto since = steady_clock::now();
    const auto errors = ranks.outcomes([&](int rank, State& state) {
      const auto turn = milliseconds(rank == 1 ? 100 : 0);
      const internal::ReduceFunction slow = [&](void*, const void*, const void*,
                                                size_t) {
        spinUntil(steady_clock::now() + turn);
      };
      std::vector<int64_t> in(400);
      std::vector<int64_t> out(400);
      Request request = requestBy(algorithm, 400);
      request.maxSegmentBytes = 40;
      Arguments arguments;
      arguments.input = in.data();
      arguments.output = out.data();
      arguments.function = &slow;
      arguments.prefix = kAllreduceSlotPrefix;
      arguments.timeout = milliseconds(400);
      state.run(request, arguments);
    });
    for (const std::exception_ptr& error : errors) {
      EXPECT_THAT(textOf(error), HasSubstr("Timed out after 400 ms"))
          << algorithm;
    }
    EXPECT_LT(steady_clock::now() - since, milliseconds(1400));
  }
}

// A channel whose lanes are all taken, which is found out late.
class LateLanes : public internal::Channel, public internal::Direct {
 public:
  using Operation = internal::Operation;

  LateLanes(internal::Channel& links, milliseconds waited)
      : links_(links), waited_(waited) {}

  internal::Direct* direct() override { return this; }
  size_t slotBytes() const override { return 1 << 17; }
  Entry enter(uint64_t, milliseconds) override {
    return {nullptr, false, waited_};
  }
  bool crowded() const override { return false; }
  void goOn(internal::Lane&) override {}
  void leave(internal::Lane&) override {}
  void takeBack(uint64_t, std::chrono::milliseconds) override {}
  bool hasGoneOn(uint64_t) const override { return false; }

  void postSend(Operation& op, int dst, uint64_t slot, const void* data,
                size_t bytes, uint64_t check, bool more) override {
    links_.postSend(op, dst, slot, data, bytes, check, more);
  }
  void postRecv(Operation& op, int src, uint64_t slot, void* data, size_t bytes,
                uint64_t check) override {
    links_.postRecv(op, src, slot, data, bytes, check);
  }
  bool waitUntil(const std::function<bool()>& ready,
                 Deadline deadline) override {
    return links_.waitUntil(ready, deadline);
  }
  void poll() override { links_.poll(); }
  void cancel(Operation& op) override { links_.cancel(op); }
  void fail(internal::CausePtr cause) override { links_.fail(cause); }
  internal::CausePtr failure() const override { return links_.failure(); }
  int rank() const override { return links_.rank(); }
  int size() const override { return links_.size(); }
  std::string linkName(int peer) const override {
    return links_.linkName(peer);
  }
  size_t eagerBytes() const override { return links_.eagerBytes(); }

 private:
  internal::Channel& links_;
  const milliseconds waited_;
};

// Of the search for a lane and of what is done without one.
TEST(Deadline, IsOfLanesAndLinksTogether) {
  testing_support::FakeWorld world(2);
  LateLanes channel(world.channel(0), milliseconds(9960));
  State state(channel, {}, "");
  std::vector<int64_t> in(10);
  std::vector<int64_t> out(10);
  Arguments arguments;
  arguments.input = in.data();
  arguments.output = out.data();
  arguments.prefix = kAllreduceSlotPrefix;
  arguments.timeout = milliseconds(10000);
  const Request request = requestBy(nullptr, 10);
  std::string text = "no error";
  const auto start = std::chrono::steady_clock::now();
  try {
    state.run(request, arguments);  // the other rank never comes
  } catch (const TimeoutException& e) {
    text = e.what();
  }
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_THAT(text, HasSubstr("Timed out after 10000 ms"));
  EXPECT_GE(took, milliseconds(40));
  EXPECT_LT(took, milliseconds(5000));
}

// And one that has no memory for an operation that begins.
class NoMemoryToBegin final : public LateLanes {
 public:
  explicit NoMemoryToBegin(internal::Channel& links)
      : LateLanes(links, milliseconds(0)) {}

  uint64_t begin(uint64_t, uint64_t, const internal::CheckDetailsPtr&,
                 internal::Repeats*) override {
    throw std::bad_alloc();
  }
  void takeBack(uint64_t tag, milliseconds) override {
    takenBack.push_back(tag);
  }

  std::vector<uint64_t> takenBack;
};

// All ranks have noted that it goes over the links, and it does not.
TEST(WithoutALane, ACallThatDoesNotBeginIsTakenBack) {
  testing_support::FakeWorld world(2);
  NoMemoryToBegin channel(world.channel(0));
  State state(channel, {}, "");
  std::vector<int64_t> data(10);
  Arguments arguments = inPlace(data);
  arguments.tag = 7;
  Request request = requestBy(nullptr, data.size());
  request.inPlace = true;
  EXPECT_THROW(state.run(request, arguments), std::bad_alloc);
  const uint64_t slot = Slot::build(kAllreduceSlotPrefix, 7);
  EXPECT_EQ(std::vector<uint64_t>{internal::tagOf(slot)}, channel.takenBack);
  EXPECT_EQ(nullptr, channel.failure());
  EXPECT_THROW(state.run(request, arguments), std::bad_alloc);
  EXPECT_EQ(2u, channel.takenBack.size());
}

// And one whose memory takes some time to register.
class SlowMemory final : public LateLanes {
 public:
  explicit SlowMemory(internal::Channel& links)
      : LateLanes(links, milliseconds(0)) {}

  std::unique_ptr<internal::KeptMemory> keep(void*, size_t, bool) override {
    keptAt = Deadline::Clock::now();
    spinUntil(keptAt + milliseconds(1));
    return nullptr;
  }
  size_t eagerBytes() const override { return 0; }
  bool waitUntil(const std::function<bool()>&, Deadline deadline) override {
    waitedFor = deadline;
    return false;
  }

  Deadline::Clock::time_point keptAt;
  Deadline waitedFor;
};

TEST(Deadline, BeginsBeforeMemoryIsRegistered) {
  testing_support::FakeWorld world(2);
  SlowMemory channel(world.channel(0));
  State state(channel, {}, "");
  std::vector<int64_t> data(100000);
  const Arguments arguments = inPlace(data);
  Request request = requestBy("ring", data.size());
  request.inPlace = true;
  EXPECT_THROW(state.run(request, arguments), TimeoutException);
  EXPECT_LE(channel.waitedFor.at(), channel.keptAt + arguments.timeout);
}

}  // namespace
}  // namespace algorithms
GLOO_NAMESPACE_END
