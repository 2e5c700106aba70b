// A collective has one deadline, whatever it is at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

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

}  // namespace
}  // namespace algorithms
GLOO_NAMESPACE_END
