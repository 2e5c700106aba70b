// Operations of a lane that are only counted as they repeat each other
// (gloo/internal/repeats.h) are compared with what is said over the links, as
// all others.
#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <chrono>

#include "gloo/allreduce.h"
#include "gloo/broadcast.h"
#include "gloo/common/deadline.h"
#include "gloo/common/error.h"
#include "gloo/context.h"
#include "gloo/math.h"
#include "gloo/transport/shm/device.h"
#include "tests/algorithms/lanes.h"
#include "tests/support/spawn.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using ContextPtr = std::shared_ptr<Context>;

constexpr uint32_t kTag = 7;

internal::Channel& channelOf(const ContextPtr& context) {
  return internal::Channel::of(Inside::transport(*context));
}

// From a rank that waits for nobody before the next one.
class Broadcast {
 public:
  explicit Broadcast(const ContextPtr& context, int root = 0) : opts_(context) {
    opts_.setOutput(&value_, 1);
    opts_.setRoot(root);
    opts_.setTag(kTag);
  }
  void run() { broadcast(opts_); }

 private:
  int value_ = 1;
  BroadcastOptions opts_;
};

void expectMismatch(const internal::Channel& channel) {
  const internal::CausePtr cause = channel.failure();
  ASSERT_NE(cause, nullptr);
  EXPECT_EQ(internal::Cause::Kind::kMismatch, cause->kind) << cause->text;
  EXPECT_NE(cause->text.find("broadcast"), std::string::npos) << cause->text;
  EXPECT_NE(cause->text.find("gather"), std::string::npos) << cause->text;
}

// Rank 0 broadcasts so many times with rank 1, then once more, while that one
// gathers. `first` is what rank 0 does then, and `second` rank 1.
class RepeatsTest : public testing::TestWithParam<int> {
 protected:
  template <typename First, typename Second>
  void run(const First& first, const Second& second) {
    spawnContexts(
        Mode::kThreads, [] { return transport::shm::CreateDevice(); }, 2,
        [&](const ContextPtr& context) {
          Broadcast broadcast(context);
          for (int i = 0; i < GetParam(); i++) {
            broadcast.run();
          }
          both_.arrive_and_wait();
          if (context->rank == 0) {
            first(broadcast, channelOf(context));
          } else {
            second(broadcast, context);
          }
          both_.arrive_and_wait();
        });
  }

  std::barrier<> both_{2};
};

TEST_P(RepeatsTest, AWordThatWasThereIsComparedAtOnce) {
  run(
      [&](Broadcast& broadcast, internal::Channel& channel) {
        both_.arrive_and_wait();
        channel.poll();
        EXPECT_EQ(channel.failure(), nullptr);
        EXPECT_THROW(broadcast.run(), MismatchException);
        expectMismatch(channel);
      },
      [&](Broadcast&, const ContextPtr& context) {
        gatherOnes(context, kTag);
        both_.arrive_and_wait();
      });
}

TEST_P(RepeatsTest, AWordThatComesLaterIsCompared) {
  run(
      [&](Broadcast& broadcast, internal::Channel& channel) {
        broadcast.run();
        both_.arrive_and_wait();
        const auto deadline = Deadline::after(std::chrono::seconds(10));
        while (channel.failure() == nullptr && !deadline.expired()) {
          channel.poll();
        }
        expectMismatch(channel);
      },
      [&](Broadcast& broadcast, const ContextPtr& context) {
        both_.arrive_and_wait();
        // It may hear of it before it is through.
        EXPECT_THROW(
            {
              gatherOnes(context, kTag);
              broadcast.run();
            },
            MismatchException);
      });
}

INSTANTIATE_TEST_SUITE_P(Times, RepeatsTest,
                         testing::Values(0, 1, 2, 3, 10, 3000));

// Rank 1 may be ahead by an operation of the lane, too, when it says another
// one: that has come before rank 0's operations begin to repeat each other.
TEST(RepeatsTest, AWordThatIsFurtherAheadIsComparedAtOnce) {
  for (int before = 0; before <= 3; before++) {
    for (int ahead = 0; ahead <= 1; ahead++) {
      SCOPED_TRACE(testing::Message() << before << " before, " << ahead);
      std::barrier<> both{2};
      spawnContexts(
          Mode::kThreads, [] { return transport::shm::CreateDevice(); }, 2,
          [&](const ContextPtr& context) {
            Broadcast broadcast(context, 1);
            const auto times = [&](int n) {
              for (int i = 0; i < n; i++) {
                broadcast.run();
              }
            };
            times(before);
            both.arrive_and_wait();
            if (context->rank == 1) {
              times(ahead);
              gatherOnes(context, kTag);
            }
            both.arrive_and_wait();
            if (context->rank == 0) {
              internal::Channel& channel = channelOf(context);
              channel.poll();
              EXPECT_EQ(channel.failure(), nullptr);
              EXPECT_NO_THROW(times(ahead));
              // Well before the context's 15 s, when it would be found as well.
              const auto limit = Deadline::after(std::chrono::seconds(5));
              EXPECT_THROW(broadcast.run(), MismatchException);
              EXPECT_FALSE(limit.expired());
              expectMismatch(channel);
            }
            both.arrive_and_wait();
          });
      ASSERT_FALSE(HasFailure());
    }
  }
}

// As its channel finds no memory to take it.
TEST(RepeatsTest, ACountThatWasNotTakenIsThereStill) {
  internal::Repeats repeats;
  repeats.count();
  repeats.count();
  EXPECT_EQ(2u, repeats.untaken());
  EXPECT_EQ(2u, repeats.untaken());
  repeats.count();
  repeats.take(2);
  EXPECT_EQ(1u, repeats.untaken());
  repeats.take(1);
  EXPECT_EQ(0u, repeats.untaken());
}

// Numbers go on where a lane has left them: with operations over the links
// between, and other ones in the lane.
TEST(RepeatsTest, AreCountedAmongTheOthers) {
  spawnContexts(
      Mode::kThreads, [] { return transport::shm::CreateDevice(); }, 2,
      [&](const ContextPtr& context) {
        Broadcast broadcast(context);
        for (int round = 0; round < 300; round++) {
          for (int i = 0; i < round % 23; i++) {
            broadcast.run();
          }
          if (round % 3 != 0) {
            gatherOnes(context, kTag);
          }
          if (round % 5 == 0) {
            std::array<int, 3> values{1, 2, 3};
            AllreduceOptions opts(context);
            opts.setOutput(values.data(), values.size());
            opts.setReduceFunction(
                static_cast<void (*)(void*, const void*, const void*, size_t)>(
                    &sum<int>));
            opts.setTag(kTag);
            allreduce(opts);
            EXPECT_EQ((std::array<int, 3>{2, 4, 6}), values);
          }
        }
      });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
