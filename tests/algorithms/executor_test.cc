// The executor on a channel that delivers in random order.
#include "algorithms/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <numeric>

#include "gloo/common/error.h"
#include "gloo/math.h"
#include "gloo/types.h"
#include "tests/algorithms/ranks.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

using testing_support::FakeOptions;
constexpr std::chrono::milliseconds kLong{60000};

Arguments sumArguments(const std::vector<int64_t>& in,
                       std::vector<int64_t>& out) {
  Arguments arguments;
  arguments.input = in.data();
  arguments.output = out.data();
  arguments.kernel = internal::kernelFor(internal::ElementType::kInt64,
                                         internal::Reduction::kSum);
  arguments.prefix = kAllreduceSlotPrefix;
  arguments.timeout = kLong;
  return arguments;
}

// Of a library that is gone when the plan is looked at again.
TEST(Plan, NeedsNoNameOfTheCallersAfterwards) {
  const Selection selection(NetworkParameters(), 2);
  std::string name = "ring";
  const Plan plan(sumRequest(name.data(), 100), 0, 2, selection, 0);
  EXPECT_EQ("ring", plan.algorithm().name);
  name = "????";
  EXPECT_TRUE(plan.serves(sumRequest("ring", 100)));
  EXPECT_FALSE(plan.serves(sumRequest(name.data(), 100)));
  EXPECT_FALSE(plan.serves(sumRequest(nullptr, 100)));
}

TEST(Plan, NamesAnAlgorithmThatThereIsNot) {
  const Selection selection(NetworkParameters(), 2);
  try {
    const Plan plan(sumRequest("rung", 100), 0, 2, selection, 0);
    FAIL() << "nothing was thrown";
  } catch (const InvalidOperationException& error) {
    EXPECT_NE(std::string(error.what()).find("rung"), std::string::npos)
        << error.what();
  }
}

void expectSums(Ranks& ranks, const Request& request) {
  const auto n = static_cast<int64_t>(ranks.size());
  ranks.run([&](int rank, State& state) {
    std::vector<int64_t> in(request.counts.count);
    std::iota(in.begin(), in.end(), rank);
    std::vector<int64_t> out(in.size(), -1);
    state.run(request, sumArguments(in, out));
    for (size_t i = 0; i < out.size(); i++) {
      ASSERT_EQ(n * static_cast<int64_t>(i) + n * (n - 1) / 2, out[i])
          << request.forced << " size " << n << " rank " << rank << " at " << i;
    }
  });
  EXPECT_EQ(0u, ranks.world().pending());
}

TEST(Executor, SumsForAllSizesCountsAndSegments) {
  unsigned seed = 1;
  for (const char* algorithm :
       {"recursive_doubling", "halving_doubling", "ring"}) {
    for (const int size : {1, 2, 3, 4, 5, 7, 8, 13}) {
      for (const bool synchronous : {true, false}) {
        Ranks ranks(size, {synchronous, seed++, true, 0});
        for (const size_t count : {0, 1, 2, 13, 100, 1000}) {
          for (const size_t segment : {8, 64, 1 << 20}) {
            Request request = sumRequest(algorithm, count);
            request.maxSegmentBytes = segment;
            expectSums(ranks, request);
          }
        }
      }
    }
  }
}

TEST(Executor, BroadcastsFromEveryRoot) {
  for (const int size : {1, 2, 3, 6, 8}) {
    Ranks ranks(size);
    for (int root = 0; root < size; root++) {
      Request request;
      request.collective = Collective::kBroadcast;
      request.root = root;
      request.counts.count = 1000;
      request.maxSegmentBytes = 100;
      ranks.run([&](int rank, State& state) {
        std::vector<char> in(1000, static_cast<char>(root + 1));
        std::vector<char> out(1000);
        Arguments arguments;
        arguments.input = rank == root ? in.data() : nullptr;
        arguments.output = out.data();
        arguments.prefix = kBroadcastSlotPrefix;
        arguments.timeout = kLong;
        state.run(request, arguments);
        EXPECT_EQ(in, out);
      });
    }
  }
}

TEST(Executor, ScattersBlocksThatLieAnywhere) {
  constexpr size_t kCount = 100;
  for (const AlgorithmInfo& info : algorithmsOf(Collective::kScatter)) {
    for (const int size : {1, 2, 3, 6, 8}) {
      Ranks ranks(size);
      for (int root = 0; root < size; root++) {
        Request request;
        request.collective = Collective::kScatter;
        request.root = root;
        request.counts.count = kCount;
        request.maxSegmentBytes = 30;
        request.forced = info.name.data();
        ranks.run([&](int rank, State& state) {
          std::vector<std::vector<char>> in;
          std::vector<const void*> pointers;
          for (int to = size; rank == root && to-- > 0;) {
            in.emplace_back(kCount, static_cast<char>(to + 1));
          }
          for (size_t to = in.size(); to-- > 0;) {
            pointers.push_back(in[to].data());
          }
          std::vector<char> out(kCount);
          Arguments arguments;
          arguments.inputBlocks = pointers.data();
          arguments.output = out.data();
          arguments.prefix = kScatterSlotPrefix;
          arguments.timeout = kLong;
          state.run(request, arguments);
          EXPECT_EQ(std::vector<char>(kCount, static_cast<char>(rank + 1)), out)
              << info.name << " size " << size << " root " << root;
        });
      }
    }
  }
}

TEST(Executor, BarrierWaitsForEveryone) {
  Ranks ranks(7);
  for (int turn = 0; turn < 20; turn++) {
    std::atomic<int> entered{0};
    Request request;
    request.collective = Collective::kBarrier;
    request.counts.count = 1;
    request.inPlace = true;
    ranks.run([&](int, State& state) {
      char token = 0;
      Arguments arguments;
      arguments.output = &token;
      arguments.prefix = kBarrierSlotPrefix;
      arguments.timeout = kLong;
      entered++;
      state.run(request, arguments);
      EXPECT_EQ(7, entered.load());
    });
  }
}

TEST(Executor, AMissingRankIsNamedAtTheDeadline) {
  for (const char* algorithm :
       {"recursive_doubling", "halving_doubling", "ring"}) {
    Ranks ranks(4);
    const Request request = sumRequest(algorithm, 1000);
    const auto errors = ranks.outcomes([&](int rank, State& state) {
      if (rank == 2) {
        return;
      }
      std::vector<int64_t> in(1000);
      std::vector<int64_t> out(1000);
      Arguments arguments = sumArguments(in, out);
      arguments.tag = 17;
      arguments.timeout = std::chrono::milliseconds(50);
      state.run(request, arguments);
    });
    for (const int rank : {0, 1, 3}) {
      EXPECT_THROW(std::rethrow_exception(errors[rank]), TimeoutException);
      const std::string text = textOf(errors[rank]);
      EXPECT_NE(std::string::npos, text.find("Timed out after 50 ms")) << text;
      EXPECT_NE(std::string::npos, text.find("allreduce tag 17")) << text;
      EXPECT_NE(std::string::npos, text.find(algorithm)) << text;
    }
    EXPECT_EQ(0u, ranks.world().pending());
  }
}

TEST(Executor, AFailureAtAnyPointEndsAllRanksAndAllOperations) {
  for (size_t after = 1; after < 200; after += 3) {
    FakeOptions options;
    options.failAfter = after;
    options.seed = static_cast<unsigned>(after);
    options.synchronous = after % 2 == 0;
    Ranks ranks(5, options);
    Request request = sumRequest("ring", 200);
    request.maxSegmentBytes = 64;
    const auto errors = ranks.outcomes([&](int, State& state) {
      std::vector<int64_t> in(200);
      std::vector<int64_t> out(200);
      for (int turn = 0; turn < 3; turn++) {
        state.run(request, sumArguments(in, out));
      }
    });
    for (const auto& error : errors) {
      EXPECT_THROW(std::rethrow_exception(error), PeerLostException);
      EXPECT_NE(std::string::npos, textOf(error).find("injected failure"));
    }
  }
}

TEST(Executor, AThrowingReduceFunctionReachesItsCallerAndFailsTheOthers) {
  Ranks ranks(3);
  Request request = sumRequest("ring", 300);
  request.maxSegmentBytes = 80;
  request.reduction = internal::Reduction::kCustom;
  const auto errors = ranks.outcomes([&](int rank, State& state) {
    std::vector<int64_t> in(300);
    std::vector<int64_t> out(300);
    const internal::ReduceFunction function = [&](void* c, const void* a,
                                                  const void* b, size_t n) {
      if (rank == 1) {
        throw std::domain_error("cannot add");
      }
      sum<int64_t>(c, a, b, n);
    };
    Arguments arguments = sumArguments(in, out);
    arguments.kernel = nullptr;
    arguments.function = &function;
    state.run(request, arguments);
  });
  EXPECT_THROW(std::rethrow_exception(errors[1]), std::domain_error);
  EXPECT_THROW(std::rethrow_exception(errors[0]), IoException);
  EXPECT_THROW(std::rethrow_exception(errors[2]), IoException);
  EXPECT_EQ(0u, ranks.world().pending());
}

// What comes behind a long reduction is known of before it.
TEST(Executor, ReceivesAreStartedBeforeWhatTakesLong) {
  constexpr size_t kCount = 64 << 10;
  FakeOptions eager;
  eager.synchronous = false;
  internal::Profile profile;
  profile.segmentBytes = size_t{1} << 20;
  Ranks ranks(2, eager, profile);
  Request request = sumRequest("halving_doubling", kCount);
  request.inPlace = true;  // so the second receive has to wait for the send
  request.reduction = internal::Reduction::kCustom;
  std::barrier meeting(2);
  ranks.run([&](int, State& state) {
    std::vector<int64_t> data(kCount, 1);
    bool first = true;
    size_t longest = 0;
    const internal::ReduceFunction add = [&](void* c, const void* a,
                                             const void* b, size_t n) {
      if (std::exchange(first, false)) {
        meeting.arrive_and_wait();
        EXPECT_EQ(6u, ranks.world().posted());  // a send and two receives each
        meeting.arrive_and_wait();
      }
      longest = std::max(longest, n * sizeof(int64_t));
      sum<int64_t>(c, a, b, n);
    };
    Arguments arguments = sumArguments(data, data);
    arguments.kernel = nullptr;
    arguments.function = &add;
    state.run(request, arguments);
    EXPECT_EQ(std::vector<int64_t>(kCount, 2), data);
    EXPECT_LE(longest, size_t{128} << 10);
  });
}

TEST(Executor, AMessageShorterThanItsReceiveIsAMismatch) {
  Ranks ranks(2, {true, 1, true, 0});
  const auto errors = ranks.outcomes([&](int rank, State& state) {
    // Same count and check word, other segments: of a profile that is not the
    // same on all ranks.
    internal::Profile profile;
    profile.segmentBytes = rank == 0 ? 400 : 800;
    State other(state.channel(), profile, "");
    std::vector<int64_t> in(100);
    std::vector<int64_t> out(100);
    other.run(sumRequest("recursive_doubling", 100), sumArguments(in, out));
  });
  for (const auto& error : errors) {
    EXPECT_THROW(std::rethrow_exception(error), MismatchException)
        << textOf(error);
  }
}

TEST(Executor, DifferentCountsAreAMismatchAndNotWrongData) {
  Ranks ranks(3);
  const auto errors = ranks.outcomes([&](int rank, State& state) {
    const size_t count = rank == 1 ? 101 : 100;
    std::vector<int64_t> in(count);
    std::vector<int64_t> out(count);
    state.run(sumRequest("recursive_doubling", count), sumArguments(in, out));
  });
  for (const auto& error : errors) {
    EXPECT_THROW(std::rethrow_exception(error), MismatchException);
    EXPECT_NE(std::string::npos, textOf(error).find("number of elements"));
  }
}

TEST(Executor, TagsFromSeveralThreadsInDifferentOrders) {
  constexpr int kTags = 4;
  Ranks ranks(4, {true, 5, true, 0});
  ranks.run([&](int rank, State& state) {
    std::vector<std::thread> threads;
    for (int k = 0; k < kTags; k++) {
      threads.emplace_back(
          [&, tag = static_cast<uint32_t>((k + rank) % kTags)] {
            for (int turn = 0; turn < 20; turn++) {
              std::vector<int64_t> in(50, static_cast<int64_t>(tag) + 1);
              std::vector<int64_t> out(50);
              Arguments arguments = sumArguments(in, out);
              arguments.tag = tag;
              state.run(sumRequest("ring", 50), arguments);
              EXPECT_EQ(std::vector<int64_t>(50, 4 * (int64_t{tag} + 1)), out);
            }
          });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  });
}

}  // namespace
}  // namespace algorithms
GLOO_NAMESPACE_END
