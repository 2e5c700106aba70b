// Options that are used again: what was found out about a call serves the next
// ones, and none after a change.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gloo/allgather.h"
#include "gloo/allreduce.h"
#include "gloo/alltoall.h"
#include "gloo/alltoallv.h"
#include "gloo/barrier.h"
#include "gloo/broadcast.h"
#include "gloo/context.h"
#include "gloo/reduce.h"
#include "gloo/reduce_scatter.h"
#include "gloo/transport/shm/device.h"
#include "gloo/transport/tcp/device.h"
#include "tests/support/spawn.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using ContextPtr = std::shared_ptr<Context>;
using std::chrono::milliseconds;

void (*const kSum)(void*, const void*, const void*, size_t) = &sum<int>;
void (*const kMax)(void*, const void*, const void*, size_t) = &max<int>;

// In lanes, or over links where there are none.
class AgainTest : public ::testing::TestWithParam<bool> {
 protected:
  void onTwoRanks(const std::function<void(const ContextPtr&)>& body) {
    spawnContexts(
        Mode::kThreads,
        []() -> std::shared_ptr<transport::Device> {
          if (GetParam()) {
            return transport::shm::CreateDevice();
          }
          transport::tcp::attr attr("127.0.0.1");
          attr.shm = false;
          return transport::tcp::CreateDevice(attr);
        },
        2, body);
  }
};

template <typename Options>
bool isPrepared(const Options& options) {
  return options.changing().prepared() != nullptr;
}

// An allreduce of ones that was prepared.
struct Prepared {
  explicit Prepared(const ContextPtr& context) : values(8), options(context) {
    options.setOutput(values.data(), values.size());
    options.setReduceFunction(kSum);
    EXPECT_EQ(2, run());
    EXPECT_FALSE(isPrepared(options)) << "for options of one call";
    EXPECT_EQ(2, run());
    EXPECT_TRUE(isPrepared(options));
    EXPECT_EQ(2, run());
  }

  int run() {
    values.assign(values.size(), 1);
    allreduce(options);
    return values[values.size() - 1];
  }

  std::vector<int> values;
  AllreduceOptions options;
};

// What the call throws; "" if nothing.
std::string thrownBy(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

TEST_P(AgainTest, EverySetterCounts) {
  onTwoRanks([](const ContextPtr& context) {
    Prepared p(context);
    AllreduceOptions& options = p.options;
    std::vector<int> other(20, 3);
    // The result in `other`, or in the values.
    const auto check = [&](const char* what, int expected, const int& result) {
      EXPECT_FALSE(isPrepared(options)) << what;
      for (int i = 0; i < 3; i++) {
        p.values.assign(p.values.size(), 1);
        other.assign(other.size(), 3);
        allreduce(options);
        EXPECT_EQ(expected, result) << what << ", call " << i;
      }
    };
    options.setOutput(other.data(), other.size());
    check("setOutput", 6, other[19]);
    options.setOutput(other.data(), 4);
    check("another length", 3, other[4]);
    options.setInput(p.values.data(), 4);
    check("setInput", 2, other[3]);
    options.setReduceFunction(kMax);
    check("setReduceFunction", 1, other[0]);
    options.setReduceFunction([](void* c, const void*, const void*, size_t n) {
      std::fill_n(static_cast<int*>(c), n, 7);
    });
    check("a function of the caller's", 7, other[0]);
    options.setTag(5);
    check("setTag", 7, other[0]);
    options.setTimeout(milliseconds(20000));
    check("setTimeout", 7, other[0]);
    options.setMaxSegmentSize(1 << 16);
    check("setMaxSegmentSize", 7, other[0]);
    options.setReduceFunction(kSum);
    options.setInputs(std::vector<int*>{p.values.data(), p.values.data()}, 4);
    check("setInputs", 4, other[0]);
    EXPECT_FALSE(isPrepared(options)) << "inputs are reduced before the call";
    options.setAlgorithm(AllreduceOptions::RING);
    check("setAlgorithm", 4, other[0]);
    std::vector<int> large(5000, 1);
    options.setInput(large.data(), large.size());
    options.setOutput(large.data(), large.size());
    EXPECT_EQ(8, (allreduce(options), allreduce(options), allreduce(options),
                  large[0]));
    EXPECT_TRUE(isPrepared(options)) << "of more than a lane takes";
  });
}

TEST_P(AgainTest, ASetterThatThrowsLeavesNothingPrepared) {
  onTwoRanks([](const ContextPtr& context) {
    Prepared p(context);
    EXPECT_NE("", thrownBy([&] {
                double wrong = 0;
                p.options.setOutput(&wrong, 1);
              }));
    EXPECT_FALSE(isPrepared(p.options));
    EXPECT_EQ(2, p.run());
  });
}

TEST_P(AgainTest, BadOptionsAreFoundAfterGoodCalls) {
  onTwoRanks([](const ContextPtr& context) {
    Prepared p(context);
    p.options.setOutput(static_cast<int*>(nullptr), 8);
    for (int i = 0; i < 3; i++) {
      EXPECT_NE(std::string::npos,
                thrownBy([&] { allreduce(p.options); }).find("null"));
    }
  });
}

// The function lies in the options.
TEST_P(AgainTest, OptionsMayBeMoved) {
  onTwoRanks([](const ContextPtr& context) {
    std::vector<int> values(8);
    auto first = std::make_unique<AllreduceOptions>(context);
    first->setOutput(values.data(), values.size());
    const std::vector<int> added(100, 1);
    first->setReduceFunction(
        [added](void* c, const void* a, const void* b, size_t n) {
          for (size_t i = 0; i < n; i++) {
            static_cast<int*>(c)[i] = static_cast<const int*>(a)[i] +
                                      static_cast<const int*>(b)[i] + added[i];
          }
        });
    for (int i = 0; i < 3; i++) {
      allreduce(*first);
    }
    EXPECT_TRUE(isPrepared(*first));
    AllreduceOptions second(std::move(*first));
    EXPECT_FALSE(isPrepared(second));
    first.reset();
    for (int i = 0; i < 3; i++) {
      values.assign(values.size(), 1);
      allreduce(second);
      EXPECT_EQ(3, values[7]);
    }
  });
}

TEST_P(AgainTest, OptionsMayBeAssigned) {
  static_assert(std::is_nothrow_move_assignable_v<BarrierOptions>);
  static_assert(std::is_nothrow_move_assignable_v<BroadcastOptions>);
  onTwoRanks([](const ContextPtr& context) {
    Prepared p(context);
    std::vector<int> other(4);
    AllreduceOptions others(context);
    others.setOutput(other.data(), other.size());
    others.setReduceFunction(kSum);
    p.options = std::move(others);
    EXPECT_FALSE(isPrepared(p.options));
    for (int i = 0; i < 3; i++) {
      other.assign(other.size(), 2);
      EXPECT_EQ(1, p.run()) << "of the options before";
      EXPECT_EQ(4, other[3]);
    }
    p.options = AllreduceOptions(context);
    EXPECT_NE("", thrownBy([&] { allreduce(p.options); }));
  });
}

// Each with what its root, its parts or its token are.
TEST_P(AgainTest, AllCollectivesGiveTheSameAgain) {
  onTwoRanks([](const ContextPtr& context) {
    const int rank = context->rank;
    int in[2];
    int out[2];
    const auto repeat = [&](const char* what, const auto& options,
                            const auto& call, int first, int second) {
      for (int i = 0; i < 5; i++) {
        in[0] = 10 * rank + i;
        in[1] = 10 * rank + i + 1;
        out[0] = out[1] = -1;
        call(options);
        EXPECT_EQ(first < 0 ? first : first + i, out[0]) << what;
        EXPECT_EQ(second < 0 ? second : second + i, out[1]) << what;
      }
      EXPECT_TRUE(isPrepared(options)) << what;
    };
    BroadcastOptions toAll(context);
    toAll.setRoot(1);
    toAll.setInput(in, 2);
    toAll.setOutput(out, 2);
    repeat("broadcast", toAll, broadcast, 10, 11);
    ReduceOptions reduced(context);
    reduced.setRoot(1);
    reduced.setInput(in, 2);
    reduced.setOutput(out, 2);
    reduced.setReduceFunction(kMax);
    repeat("reduce", reduced, reduce, rank == 1 ? 10 : -1, rank == 1 ? 11 : -1);
    AllgatherOptions gathered(context);
    gathered.setInput(in, 1);
    gathered.setOutput(out, 2);
    repeat("allgather", gathered, allgather, 0, 10);
    AlltoallOptions exchanged(context);
    exchanged.setInput(in, 2);
    exchanged.setOutput(out, 2);
    repeat("alltoall", exchanged, alltoall, rank, 10 + rank);
    ReduceScatterOptions scattered(context);
    scattered.setInput(in, 2);
    scattered.setOutput(out, 1);
    scattered.setReduceFunction(kMax);
    repeat("reduce_scatter", scattered, reduce_scatter, 10 + rank, -1);
    AlltoallvOptions exchangedParts(context);
    exchangedParts.setInput(in, std::vector<int64_t>{1, 1});
    exchangedParts.setOutput(out, std::vector<int64_t>{1, 1});
    repeat("alltoallv", exchangedParts, alltoallv, rank, 10 + rank);
    const BarrierOptions waits(context);
    repeat("barrier", waits, barrier, -1, -1);
  });
}

TEST_P(AgainTest, AverageIsDividedEachTime) {
  onTwoRanks([](const ContextPtr& context) {
    float value = 0;
    AllreduceOptions options(context);
    options.setOutput(&value, 1);
    options.setReduceFunction(average<float>);
    for (int i = 0; i < 4; i++) {
      value = static_cast<float>(context->rank);
      allreduce(options);
      EXPECT_EQ(0.5f, value);
    }
  });
}

TEST_P(AgainTest, AContextThatHasFailedSaysSo) {
  onTwoRanks([](const ContextPtr& context) {
    Prepared p(context);
    if (context->rank == 1) {
      context->closeConnections();
      return;
    }
    for (int i = 0; i < 3; i++) {
      const std::string text = thrownBy([&] { allreduce(p.options); });
      EXPECT_NE(std::string::npos, text.find("rank 1 left")) << text;
    }
  });
}

TEST_P(AgainTest, OtherCountsAreStillAnError) {
  onTwoRanks([](const ContextPtr& context) {
    Prepared p(context);
    if (context->rank == 1) {
      p.options.setOutput(p.values.data(), p.values.size() - 1);
    }
    EXPECT_NE(std::string::npos,
              thrownBy([&] { allreduce(p.options); }).find("disagree"));
  });
}

// With the number of a call that the other rank did not make.
TEST_P(AgainTest, OneMoreCallIsStillAnError) {
  onTwoRanks([](const ContextPtr& context) {
    Prepared p(context);
    EXPECT_NE(std::string::npos, thrownBy([&] {
                                   if (context->rank == 0) {
                                     allreduce(p.options);
                                   }
                                   barrier(BarrierOptions(context));
                                 }).find("disagree"));
  });
}

TEST_P(AgainTest, OperationsOverTheLinksMayComeBetween) {
  onTwoRanks([](const ContextPtr& context) {
    Prepared p(context);
    int value = 0;
    struct Named : AllreduceOptions {
      using AllreduceOptions::AllreduceOptions;
      using AllreduceOptions::setAlgorithmName;  // for short vectors as well
    } links(context);
    links.setOutput(&value, 1);
    links.setReduceFunction(kSum);
    links.setAlgorithmName("ring");
    for (int i = 0; i < 20; i++) {
      for (int direct = 0; direct < i % 3; direct++) {
        EXPECT_EQ(2, p.run());
      }
      value = 1;
      allreduce(links);
      EXPECT_EQ(2, value);
    }
    EXPECT_TRUE(isPrepared(p.options));
  });
}

// The context's may change: no setter of the options tells.
TEST_P(AgainTest, TheContextsTimeLimitIsThatOfTheCall) {
  std::atomic<bool> over{false};
  onTwoRanks([&](const ContextPtr& context) {
    Prepared p(context);
    if (context->rank == 1) {
      over.wait(false);
      return;
    }
    context->setTimeout(milliseconds(200));
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_THROW(allreduce(p.options), TimeoutException);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(5000));
    over = true;
    over.notify_one();
  });
}

// Two calls of rank 0, of which the second is refused whichever it is: rank 1
// comes once that has happened.
TEST_P(AgainTest, ATagInUseIsStillAnError) {
  onTwoRanks([](const ContextPtr& context) {
    Prepared p(context);
    Prepared q(context);
    int word = 1;
    AllreduceOptions release(context);
    release.setOutput(&word, 1);
    release.setReduceFunction(kSum);
    release.setTag(1);
    if (context->rank == 1) {
      allreduce(release);
      EXPECT_EQ(2, p.run());
      return;
    }
    std::atomic<int> refused{0};
    std::vector<std::thread> threads;
    for (Prepared* one : {&p, &q}) {
      threads.emplace_back([one, &refused] {
        const std::string text = thrownBy([one] { EXPECT_EQ(2, one->run()); });
        if (!text.empty()) {
          EXPECT_NE(std::string::npos, text.find("under way")) << text;
          refused++;
          refused.notify_one();
        }
      });
    }
    refused.wait(0);
    allreduce(release);
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_EQ(1, refused);
  });
}

INSTANTIATE_TEST_SUITE_P(, AgainTest, ::testing::Bool(), [](const auto& info) {
  return info.param ? "lanes" : "links";
});

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
