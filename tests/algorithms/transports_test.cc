// Every collective over every transport, ranks as threads: against an oracle,
// from several threads at once, and with the caller's own buffers.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <complex>
#include <random>
#include <thread>

#include "gloo/allgather.h"
#include "gloo/allreduce.h"
#include "gloo/alltoallv.h"
#include "gloo/barrier.h"
#include "gloo/common/error.h"
#include "gloo/context.h"
#include "gloo/gather.h"
#include "gloo/scatter.h"
#include "tests/support/collectives.h"
#include "tests/support/collectives/checks.h"
#include "tests/support/transports.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using testing_support::Call;
using testing_support::checkCollective;
using testing_support::kChecks;
using testing_support::Triple;

using ContextPtr = std::shared_ptr<Context>;

constexpr unsigned kTypes = 15;

class CollectivesTest : public ::testing::TestWithParam<TestTransport> {
 protected:
  void SetUp() override { SKIP_UNLESS_AVAILABLE(GetParam()); }

  void run(int size, const ContextFunction& fn) {
    spawnContexts(Mode::kThreads, GetParam().make, size, fn);
  }
};

// Types, roots and reductions take turns, so that each collective meets them
// all; `turn` is the same on all ranks. Averages of integers, and all that a
// type has not, are sums.
void turnCall(Call& call, unsigned turn) {
  using internal::Reduction;
  constexpr Reduction kReductions[] = {
      Reduction::kSum,    Reduction::kMax,     Reduction::kMin,
      Reduction::kCustom, Reduction::kProduct, Reduction::kAverage};
  call.root = static_cast<int>(turn / 2);
  call.seed = turn;
  // Each type meets each of them, though it comes after as many turns again.
  call.reduction = kReductions[(turn + 2 * (turn / kTypes)) % 6];
}

std::string checkInTurn(size_t which, const ContextPtr& context, Call call,
                        unsigned turn) {
  using Check = std::string (*)(size_t, const ContextPtr&, const Call&);
  static constexpr Check kChecksOfTypes[kTypes] = {
      checkCollective<float>,
      checkCollective<Triple>,
      checkCollective<double>,
      checkCollective<int64_t>,
      checkCollective<bfloat16>,
      checkCollective<int32_t>,
      checkCollective<float16>,
      checkCollective<int8_t>,
      checkCollective<std::complex<float>>,
      checkCollective<uint64_t>,
      checkCollective<int16_t>,
      checkCollective<uint8_t>,
      checkCollective<std::complex<double>>,
      checkCollective<uint32_t>,
      checkCollective<uint16_t>};
  turnCall(call, turn);
  const std::string wrong = kChecksOfTypes[turn % kTypes](which, context, call);
  return wrong.empty() ? wrong
                       : MakeString(context->size, " ranks, count ", call.count,
                                    ", turn ", turn, ": ", wrong);
}

TEST_P(CollectivesTest, GiveWhatTheOracleSays) {
  for (const int size : {1, 2, 3, 4, 5, 7, 8}) {
    run(size, [size](const ContextPtr& context) {
      for (size_t which = 0; which < kChecks; which++) {
        unsigned turn = static_cast<unsigned>(which) + 16 * size;
        for (const size_t count : {0, 1, 37, 3000}) {
          for (const bool inPlace : {false, true}) {
            const Call call{count, 0, inPlace};
            EXPECT_EQ("", checkInTurn(which, context, call, turn++));
            EXPECT_EQ("", checkInTurn(which, context, call, turn++));
          }
        }
      }
    });
  }
}

TEST_P(CollectivesTest, NoRankLeavesABarrierBeforeAllHaveCome) {
  for (const int size : {1, 2, 3, 4, 5, 7, 8, 13, 16}) {
    std::atomic<int> came{0};
    run(size, [&](const ContextPtr& context) {
      BarrierOptions opts(context);
      for (int turn = 1; turn <= 20; turn++) {
        came++;
        barrier(opts);
        EXPECT_GE(came, turn * size);
      }
    });
  }
}

template <typename T>
void checkReductions(const ContextPtr& context) {
  for (const size_t count : {1, 2, 3, 6, 40, 1000}) {
    for (int root = 0; root < context->size; root++) {
      const Call call{count, root, root % 2 == 0, 0, 0};
      EXPECT_EQ("", testing_support::checkAllreduce<T>(context, call));
      EXPECT_EQ("", testing_support::checkReduce<T>(context, call));
      EXPECT_EQ("", testing_support::checkReduceScatter<T>(context, call));
    }
  }
}

TEST_P(CollectivesTest, OperandsOfReductionsAreAligned) {
  using testing_support::Foreign;
  for (const int size : {2, 3}) {
    run(size, [](const ContextPtr& context) {
      checkReductions<Foreign<8, 8>>(context);
      checkReductions<Foreign<16, 16>>(context);
      checkReductions<Foreign<48, 16>>(context);
      checkReductions<Foreign<32, 32>>(context);
      checkReductions<Foreign<64, 64>>(context);
      checkReductions<Foreign<100, 4>>(context);  // too long for any slot
    });
  }
}

TEST_P(CollectivesTest, OfManyRanks) {
  for (const int size : {13, 16}) {
    run(size, [size](const ContextPtr& context) {
      for (size_t which = 0; which < kChecks; which++) {
        unsigned turn = static_cast<unsigned>(which) + 5 * size;
        for (const size_t count : {0, 1, 37, 700, 2500}) {
          const Call call{count, 0, turn % 2 == 0};
          EXPECT_EQ("", checkInTurn(which, context, call, turn++));
        }
      }
    });
  }
}

// Of more ranks, each vector is as long as all blocks together.
TEST_P(CollectivesTest, LongOnes) {
  for (const int size : {2, 3, 5}) {
    const size_t elements = size > 3 ? 30001 : 300001;
    run(size, [size, elements](const ContextPtr& context) {
      for (size_t which = 0; which < kChecks; which++) {
        const bool hasBlocks = which > 2;
        Call call;
        call.count = size > 3 && hasBlocks
                         ? elements / static_cast<size_t>(size)
                         : elements;
        for (const bool inPlace : {false, true}) {
          turnCall(call, static_cast<unsigned>(2 * which + size + inPlace));
          call.inPlace = inPlace;
          EXPECT_EQ("", checkCollective<double>(which, context, call));
        }
      }
    });
  }
}

// Each rank's block is longer than a segment, and a little.
TEST_P(CollectivesTest, OfSeveralSegments) {
  constexpr size_t kSegment = 1000;
  for (const int size : {1, 4, 7, 8, 13, 16}) {
    run(size, [size](const ContextPtr& context) {
      for (size_t which = 0; which < kChecks; which++) {
        const unsigned turn = static_cast<unsigned>(3 * which) + 5 * size;
        const bool hasBlocks = which > 2;
        for (const bool inPlace : {false, true}) {
          Call call{kSegment + 1, 0, inPlace};
          call.segment = kSegment;
          call.count *= hasBlocks ? 1 : static_cast<size_t>(size);
          EXPECT_EQ("", checkInTurn(which, context, call, turn + inPlace));
        }
      }
    });
  }
}

// Each thread has a tag and does the same on all ranks; in which order a rank's
// threads come along differs.
TEST_P(CollectivesTest, RunConcurrentlyWithDifferentTags) {
  constexpr uint32_t kThreads = 4;
  run(3, [](const ContextPtr& context) {
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < kThreads; i++) {
      const uint32_t tag =
          (i + static_cast<uint32_t>(context->rank)) % kThreads;
      threads.emplace_back([&context, tag] {
        std::mt19937 random(tag);
        for (int turn = 0; turn < 60; turn++) {
          const size_t which = random() % kChecks;
          const size_t count = random() % (turn % 8 == 0 ? 30000 : 200);
          const Call call{count, static_cast<int>(random() % 3),
                          random() % 2 == 0, tag,
                          static_cast<unsigned>(random() % 100)};
          EXPECT_EQ("", checkCollective<int32_t>(which, context, call))
              << "tag " << tag << " turn " << turn;
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  });
}

// One thread per rank: the same tags in another order, each of them started
// before the one that the other rank began with is done.
TEST_P(CollectivesTest, StartInAnyOrderOfTags) {
  run(2, [](const ContextPtr& context) {
    std::mt19937 random(static_cast<unsigned>(context->rank));
    for (uint32_t turn = 0; turn < 20; turn++) {
      std::vector<uint32_t> tags{0, 1, 2, 3, 4, 5};
      std::shuffle(tags.begin(), tags.end(), random);
      std::vector<std::thread> threads;
      for (const uint32_t tag : tags) {
        threads.emplace_back([&context, tag, turn] {
          const Call call{1 + 2000 * tag, 0, false, tag, turn};
          EXPECT_EQ("", checkCollective<int64_t>(tag * 2, context, call));
        });
      }
      for (std::thread& thread : threads) {
        thread.join();
      }
    }
  });
}

// Of two calls with one tag at the same time, the second is refused, and the
// first is not harmed: here it is made from within the first one's reduction.
void expectRefused(const ContextPtr& context, const char* algorithm,
                   bool gathers) {
  std::vector<int> all(3);
  const auto second = [&] {
    if (gathers) {
      GatherOptions opts(context);
      opts.setTag(7);
      opts.setRoot(0);
      opts.setInput(&all[0], 1);
      if (context->rank == 0) {
        opts.setOutput(all.data(), all.size());
      }
      gather(opts);
    } else {
      BarrierOptions opts(context);
      opts.setTag(7);
      barrier(opts);
    }
  };
  std::atomic<int> refused{0};
  std::vector<int> values(100, context->rank);
  auto first = testing_support::optionsFor<AllreduceOptions>(
      context, {100, 0, true, 7, 0, false, {}, algorithm});
  first.setOutput(values.data(), values.size());
  first.setReduceFunction(
      [&](void* to, const void* a, const void* b, size_t n) {
        try {
          second();
        } catch (const InvalidOperationException& e) {
          refused += std::string(e.what()).find("tag 7") != std::string::npos;
        }
        sum<int>(to, a, b, n);
      });
  allreduce(first);
  EXPECT_EQ(values, std::vector<int>(100, 3));
  second();  // afterwards it is free
  int sums = refused;
  AllreduceOptions count(context);
  count.setTag(8);
  count.setOutput(&sums, 1);
  count.setReduceFunction(testing_support::adder<int>());
  allreduce(count);
  EXPECT_GT(sums, 0);
}

// Either may go over the links, and either in a lane: gather has no other way,
// and no algorithm that is asked for by name has.
TEST_P(CollectivesTest, ATagThatIsInUseIsRefused) {
  for (const char* algorithm : {static_cast<const char*>(nullptr), "ring"}) {
    for (const bool gathers : {false, true}) {
      run(3, [&](const ContextPtr& context) {
        expectRefused(context, algorithm, gathers);
      });
    }
  }
}

TEST_P(CollectivesTest, BuffersAreKeptUntilOthersReplaceThem) {
  run(2, [](const ContextPtr& context) {
    std::vector<int> in(6, context->rank);
    std::vector<int> out(12);
    // Kept by the caller too, and used by several calls.
    const std::shared_ptr<transport::UnboundBuffer> kept =
        context->createUnboundBuffer(in.data(), 24);
    {
      AllgatherOptions opts(context);
      opts.setInput<int>(kept);
      opts.setOutput<int>(context->createUnboundBuffer(out.data(), 48));
      EXPECT_EQ(2, kept.use_count());
      for (int turn = 0; turn < 3; turn++) {
        out.assign(12, -1);
        allgather(opts);
        EXPECT_EQ(0, out[5]);
        EXPECT_EQ(1, out[6]);
      }
      opts.setInput(in.data(), in.size());
      EXPECT_EQ(1, kept.use_count());
    }
    AlltoallvOptions opts(context);
    opts.setInput<int>(kept, std::vector<int64_t>{3, 3});
    opts.setOutput(out.data(), std::vector<int64_t>{3, 3});
    alltoallv(opts);
    EXPECT_EQ(1, out[3]);
  });
}

TEST_P(CollectivesTest, ListsOfBuffersAreInputs) {
  run(2, [](const ContextPtr& context) {
    std::vector<int> parts{1, 2};
    int mine = 0;
    ScatterOptions opts(context);
    opts.setRoot(1);
    if (context->rank == 1) {
      std::vector<std::unique_ptr<transport::UnboundBuffer>> buffers;
      buffers.push_back(context->createUnboundBuffer(&parts[0], 4));
      buffers.push_back(context->createUnboundBuffer(&parts[1], 4));
      opts.setInputs<int>(std::move(buffers));
    }
    opts.setOutput(&mine, 1);
    scatter(opts);
    EXPECT_EQ(context->rank + 1, mine);
  });
}

TEST_P(CollectivesTest, ListsOfBuffersAreOutputs) {
  run(2, [](const ContextPtr& context) {
    std::vector<int> one(5, context->rank);
    std::vector<int> two(5, 10);
    std::vector<std::shared_ptr<transport::UnboundBuffer>> buffers{
        context->createUnboundBuffer(one.data(), 20),
        context->createUnboundBuffer(two.data(), 20)};
    AllreduceOptions opts(context);
    opts.setOutputs<int>(buffers);
    opts.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, size_t)>(
            &sum<int>));
    allreduce(opts);
    EXPECT_EQ(std::vector<int>(5, 21), one);
    EXPECT_EQ(one, two);
    opts.setOutputs(std::vector<int*>{two.data()}, 5);
    EXPECT_EQ(1, buffers[0].use_count());  // given back
  });
}

INSTANTIATE_TEST_SUITE_P(, CollectivesTest, ::testing::ValuesIn(transports()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
