// A rank is alive but slow: whoever's time is up first, and whomever that one
// waited for, all are told which rank it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/broadcast.h"
#include "gloo/context.h"
#include "tests/support/collectives.h"
#include "tests/support/process_group.h"
#include "tests/support/transports.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using std::chrono::milliseconds;
using testing::Each;
using testing::HasSubstr;
using testing_support::Call;
using testing_support::ContextRef;
using testing_support::optionsFor;

constexpr int kSize = 4;
constexpr int kFirst = 2;  // whose time is up first
constexpr uint32_t kTag = 5;
const milliseconds kTimeout = milliseconds(150) * slowness();

using Texts = std::array<std::string, kSize>;  // of what the ranks threw

// Over links: the algorithms that are named, in a mesh that has no mapped
// memory for barriers, which cannot be named. In mapped memory: no algorithm
// is.
struct Way {
  std::string transport;
  bool isMapped = false;
  std::string name() const { return isMapped ? "mapped" : transport; }
};

class SlowRankTest : public testing::TestWithParam<Way> {
 protected:
  using Body = std::function<void(ContextRef, milliseconds timeout)>;

  DeviceMaker maker() const {
    for (const TestTransport& transport : transports()) {
      if (transport.name == GetParam().transport) {
        return transport.make;
      }
    }
    return nullptr;
  }

  Call callBy(const char* algorithm) const {
    Call call;
    call.tag = kTag;
    call.algorithm = GetParam().isMapped ? nullptr : algorithm;
    return call;
  }

  void callBarrier(ContextRef context, milliseconds timeout) const {
    auto opts = optionsFor<BarrierOptions>(context, callBy("dissemination"));
    opts.setTimeout(timeout);
    barrier(opts);
  }

  void callBroadcast(ContextRef context, milliseconds timeout) const {
    float value = 0;
    auto opts = optionsFor<BroadcastOptions>(context, callBy("chain"));
    opts.setOutput(&value, 1);
    opts.setRoot(kFirst);
    opts.setTimeout(timeout);
    broadcast(opts);
  }

  void callAllreduce(ContextRef context, milliseconds timeout,
                     const AllreduceOptions::Func& function) const {
    std::vector<float> values(100000);
    auto opts = optionsFor<AllreduceOptions>(context, callBy("ring"));
    opts.setOutput(values.data(), values.size());
    opts.setReduceFunction(function);
    opts.setTimeout(timeout);
    allreduce(opts);
  }

  void callAllreduce(ContextRef context, milliseconds timeout) const {
    callAllreduce(context, timeout, testing_support::adder<float>());
  }

  // kFirst begins once all others have, or are slow, and has less time.
  Texts outcomes(const std::set<int>& slow, const Body& others,
                 const Body& slowOnes) {
    Texts texts;
    std::atomic<int> begun{0};
    spawnContexts(Mode::kThreads, maker(), kSize, [&](ContextRef context) {
      const bool isFirst = context->rank == kFirst;
      const bool isSlow = slow.contains(context->rank);
      callBarrier(context, context->getTimeout());  // nobody still connects
      while (isFirst && begun < kSize - 1) {
        std::this_thread::yield();
      }
      begun++;
      try {
        (isSlow ? slowOnes : others)(context,
                                     isFirst ? kTimeout : contextTimeout());
      } catch (const TimeoutException& e) {
        texts[static_cast<size_t>(context->rank)] = e.what();
        failed_++;
      }
    });
    return texts;
  }

  // They are done when the others have failed.
  void beSlow(size_t slowRanks) const {
    while (failed_ < kSize - static_cast<int>(slowRanks)) {
      std::this_thread::sleep_for(milliseconds(1));
    }
  }

  // Of ranks that call nothing meanwhile, and are told by their next call.
  Texts outcomesWithout(const std::set<int>& slow, const Body& body) {
    return outcomes(slow, body, [&](ContextRef context, milliseconds timeout) {
      beSlow(slow.size());
      body(context, timeout);
    });
  }

  std::atomic<int> failed_{0};
};

TEST_P(SlowRankTest, IsNamedByWhoWaitsAtABarrier) {
  const auto texts = outcomesWithout(
      {3}, [&](auto& context, auto timeout) { callBarrier(context, timeout); });
  EXPECT_THAT(texts,
              Each(HasSubstr("rank 3 has not begun this collective (tag 5)")));
  EXPECT_THAT(texts, Each(HasSubstr("[found by rank 2;")));
}

TEST_P(SlowRankTest, IsNamedByWhoWaitsInAnAllreduce) {
  const auto texts = outcomesWithout({3}, [&](auto& context, auto timeout) {
    callAllreduce(context, timeout);
  });
  EXPECT_THAT(texts,
              Each(HasSubstr("rank 3 has not begun this collective (tag 5)")));
}

TEST_P(SlowRankTest, AndOthersAreAllNamed) {
  const auto texts = outcomesWithout({1, 3}, [&](auto& context, auto timeout) {
    callBarrier(context, timeout);
  });
  EXPECT_THAT(texts, Each(HasSubstr("ranks 1, 3 have not begun this "
                                    "collective (tag 5)")));
}

// Who waits for it in the operation before is not to blame.
TEST_P(SlowRankTest, IsNamedAloneWhereOthersAreBehindBecauseOfIt) {
  const auto texts = outcomesWithout({3}, [&](auto& context, auto timeout) {
    callBroadcast(context, timeout);  // kFirst sends, to rank 3 if by a chain
    callBarrier(context, timeout);
  });
  EXPECT_THAT(texts, Each(HasSubstr("; rank 3 has not begun this collective")));
}

// All have begun: the rank that was waited for is named, which may wait itself.
TEST_P(SlowRankTest, InTheMiddleIsNoneThatHasNotBegun) {
  const auto texts = outcomes(
      {3},
      [&](auto& context, auto timeout) { callAllreduce(context, timeout); },
      [&](auto& context, auto timeout) {
        callAllreduce(
            context, timeout,
            [&](void*, const void*, const void*, size_t) { beSlow(1); });
      });
  const std::string peer = GetParam().isMapped ? "3" : "1";
  EXPECT_THAT(texts, Each(HasSubstr("Timed out after")));
  EXPECT_THAT(texts, Each(HasSubstr("rank 2 waited for rank " + peer + " [")));
}

INSTANTIATE_TEST_SUITE_P(, SlowRankTest,
                         testing::Values(Way{"tcp"}, Way{"tcp_shm_lazy"},
                                         Way{"shm", true}),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
