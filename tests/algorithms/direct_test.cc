// Collectives on memory that all ranks have mapped: results against the oracle
// around every size at which the way changes, with threads and processes;
// disagreement, deadlines, departures, closing and functions that throw.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/context.h"
#include "gloo/internal/statistics.h"
#include "gloo/transport/shm/device.h"
#include "tests/support/collectives.h"
#include "tests/support/spawn.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using testing_support::Call;
using testing_support::checkCollective;
using testing_support::kChecks;
using testing_support::Triple;

using ContextPtr = std::shared_ptr<Context>;

std::shared_ptr<transport::Device> makeDevice() {
  return transport::shm::CreateDevice();
}

template <typename T>
void checkAll(const ContextPtr& context, size_t count, unsigned seed) {
  for (size_t which = 0; which < kChecks; which++) {
    for (const bool inPlace : {false, true}) {
      const Call call{count, static_cast<int>(seed), inPlace, 0, seed};
      ASSERT_EQ("", checkCollective<T>(which, context, call))
          << context->size << " ranks, count " << count
          << (inPlace ? ", in place" : "");
    }
  }
}

class DirectTest : public ::testing::TestWithParam<int> {};

// Inline, flat, one chunk, several, and a short one at the end.
TEST_P(DirectTest, GivesWhatTheOracleSays) {
  spawnContexts(Mode::kThreads, makeDevice, GetParam(),
                [](const ContextPtr& context) {
                  unsigned seed = 0;
                  for (const size_t count :
                       {0, 3, 10, 11, 13, 14, 26, 27, 1025, 5000, 33000}) {
                    checkAll<float>(context, count, seed++);
                  }
                  checkAll<Triple>(context, 3001, seed++);
                  checkAll<float16>(context, 3001, seed++);
                  checkAll<int8_t>(context, 41, seed++);
                  checkAll<double>(context, 70001, seed++);
                });
}

class DirectProcessesTest : public ::testing::TestWithParam<int> {};

TEST_P(DirectProcessesTest, GiveWhatTheOracleSays) {
  spawnContexts(Mode::kProcesses, makeDevice, GetParam(),
                [](const ContextPtr& context) {
                  unsigned seed = 0;
                  for (const size_t count : {0, 3, 700, 40001}) {
                    checkAll<int32_t>(context, count, seed++);
                  }
                });
}

INSTANTIATE_TEST_SUITE_P(Ranks, DirectTest,
                         ::testing::Values(1, 2, 3, 4, 5, 8));
INSTANTIATE_TEST_SUITE_P(Ranks, DirectProcessesTest,
                         ::testing::Values(1, 2, 3, 4, 5, 8),
                         [](const auto& info) {
                           return MakeString(info.param, "_processes");
                         });

TEST(DirectTest, FunctionsOfTheCallersSeeLowerRanksLeft) {
  for (const int size : {2, 3}) {
    spawnContexts(Mode::kThreads, makeDevice, size, [&](const auto& context) {
      for (const size_t count : {2, 2000, 40000}) {
        std::vector<int> values(count, context->rank + 1);
        AllreduceOptions opts(context);
        opts.setOutput(values.data(), count);
        // Not commutative: digits, those of lower ranks first.
        opts.setReduceFunction(
            [](void* c, const void* a, const void* b, size_t n) {
              for (size_t i = 0; i < n; i++) {
                static_cast<int*>(c)[i] = static_cast<const int*>(a)[i] * 10 +
                                          static_cast<const int*>(b)[i];
              }
            });
        allreduce(opts);
        ASSERT_TRUE(std::all_of(values.begin(), values.end(), [&](int v) {
          return v == (size == 2 ? 12 : 123);
        }));
      }
    });
  }
}

// Several threads, so that an operation may find no idle lane.
TEST(DirectTest, MoreTagsAtOnceThanLanesWorkToo) {
  constexpr uint32_t kThreads = 7;
  spawnContexts(Mode::kThreads, makeDevice, 3, [](const auto& context) {
    std::array<std::string, kThreads> wrong;
    std::vector<std::thread> threads;
    for (uint32_t thread = 0; thread < kThreads; thread++) {
      threads.emplace_back([&, thread] {
        for (uint32_t i = 0; i < 150 && wrong[thread].empty(); i++) {
          const uint32_t tag = i * kThreads + thread;
          const Call call{50 + i * 7, static_cast<int>(i % 3), i % 2 == 0, tag,
                          tag};
          wrong[thread] = checkCollective<int>(i % kChecks, context, call);
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    for (const std::string& text : wrong) {
      EXPECT_EQ("", text);
    }
  });
}

TEST(DirectTest, ManyRanksOnFewCores) {
  spawnContexts(Mode::kThreads, makeDevice, 64, [](const ContextPtr& context) {
    for (const size_t count : {1, 100, 10000}) {
      for (int turn = 0; turn < 3; turn++) {
        const Call call{count, 0, false, 0, static_cast<unsigned>(turn)};
        ASSERT_EQ("", testing_support::checkAllreduce<int>(context, call));
      }
    }
  });
}

TEST(DirectTest, SendsNoMessages) {
  spawnContexts(Mode::kThreads, makeDevice, 2, [](const ContextPtr& context) {
    const auto& device = *context->getDevice();
    const auto before = internal::statisticsOf(device);
    const Call call{8, 0, false, 0, 0};
    for (int i = 0; i < 100; i++) {
      ASSERT_EQ("", testing_support::checkAllreduce<float>(context, call));
    }
    // Nor with a new tag each time.
    for (uint32_t tag = 0; tag < 100; tag++) {
      ASSERT_EQ("", testing_support::checkAllreduce<float>(
                        context, {8, 0, false, tag, tag}));
    }
    const auto after = internal::statisticsOf(device);
    // Of connecting: a credit may still be on its way.
    EXPECT_LE(after.framesSent, before.framesSent + 2);
    EXPECT_EQ(before.allocations, after.allocations);
  });
}

// Also where the numbers of operations are told late.
TEST(DirectTest, OperationsOverTheLinksMayComeBetween) {
  spawnContexts(Mode::kThreads, makeDevice, 3, [](const ContextPtr& context) {
    for (unsigned i = 0; i < 60; i++) {
      Call call{i, static_cast<int>(i % 3), false, i % 2, i};
      for (unsigned direct = 0; direct < i % 4; direct++) {
        ASSERT_EQ("", testing_support::checkAllreduce<int>(context, call));
      }
      call.algorithm = "ring";
      ASSERT_EQ("", testing_support::checkAllreduce<int>(context, call));
    }
  });
}

// ---- When ranks disagree or fail

// What each rank's call threw; "" if nothing.
std::vector<std::string> outcomes(
    int size, const std::function<void(const ContextPtr&)>& body,
    std::chrono::milliseconds timeout = std::chrono::seconds(30)) {
  std::vector<std::string> texts(static_cast<size_t>(size));
  spawnContexts(Mode::kThreads, makeDevice, size, [&](const auto& context) {
    context->setTimeout(timeout);
    // Else a rank may learn of a failure while it still connects.
    barrier(BarrierOptions(context));
    try {
      body(context);
    } catch (const std::exception& e) {
      texts[static_cast<size_t>(context->rank)] = e.what();
    }
  });
  return texts;
}

testing::AssertionResult allSay(const std::vector<std::string>& texts,
                                const std::string& part) {
  for (const std::string& text : texts) {
    if (text.find(part) == std::string::npos) {
      return testing::AssertionFailure() << "'" << text << "' lacks " << part;
    }
  }
  return testing::AssertionSuccess();
}

TEST(DirectTest, OtherCountsAreAnError) {
  for (const size_t count : {4, 4000, 1 << 20}) {
    EXPECT_TRUE(allSay(
        outcomes(3,
                 [&](const ContextPtr& context) {
                   const size_t mine = count + (context->rank == 2 ? 1 : 0);
                   const Call call{mine, 0, false, 0, 0};
                   testing_support::checkAllreduce<int>(context, call);
                 }),
        "disagree"));
  }
}

// Where the counts themselves do not fit the word that is compared.
TEST(DirectTest, TheBytesOfBothSidesAreNamed) {
  const size_t count = size_t{1} << 20;
  const auto texts = outcomes(2, [&](const ContextPtr& context) {
    const size_t mine = count + (context->rank == 1 ? 1 : 0);
    testing_support::checkAllreduce<int>(context, {mine, 0, false, 0, 0});
  });
  EXPECT_TRUE(allSay(texts, "4194304 on rank 0")) << texts[0];
  EXPECT_TRUE(allSay(texts, "4194308 on rank 1")) << texts[0];
}

TEST(DirectTest, OtherTypesAreAnError) {
  EXPECT_TRUE(allSay(
      outcomes(2,
               [](const ContextPtr& context) {
                 const Call call{5, 0, false, 0, 0};
                 context->rank == 0
                     ? testing_support::checkAllreduce<int>(context, call)
                     : testing_support::checkAllreduce<float>(context, call);
               }),
      "type"));
}

// Also with one that has no direct form, whose message nobody receives.
TEST(DirectTest, OtherOperationsAreAnError) {
  for (const size_t other : {1, 2, 3, 6, 8, 10}) {
    EXPECT_TRUE(allSay(outcomes(2,
                                [&](const ContextPtr& context) {
                                  const Call call{5, 1, false, 0, 0};
                                  checkCollective<int>(
                                      context->rank == 0 ? 0 : other, context,
                                      call);
                                  // Where one of them need not wait, the next
                                  // one tells.
                                  barrier(BarrierOptions(context));
                                  barrier(BarrierOptions(context));
                                }),
                       "disagree"))
        << other;
  }
}

// Nobody waits for the others of a reduce; who comes to their lines later, with
// another tag, finds it.
TEST(DirectTest, TheTagOfTheOneThatDifferedIsNamed) {
  EXPECT_TRUE(allSay(outcomes(2,
                              [](const ContextPtr& context) {
                                Call call{8, context->rank, false, 1, 0};
                                testing_support::checkReduce<int>(context,
                                                                  call);
                                for (uint32_t tag = 100; tag < 200; tag++) {
                                  BarrierOptions other(context);
                                  other.setTag(tag);
                                  barrier(other);
                                }
                              }),
                     "collective with tag 1:"));
}

TEST(DirectTest, OneThatTakesTheLinksAloneIsAnError) {
  for (const int before : {0, 1, 5, 5000}) {
    EXPECT_TRUE(allSay(
        outcomes(2,
                 [&](const ContextPtr& context) {
                   Call call{5, 0, false, 0, 0};
                   for (int i = 0; i < before; i++) {
                     testing_support::checkAllreduce<int>(context, call);
                   }
                   call.algorithm = context->rank == 1 ? "ring" : nullptr;
                   testing_support::checkAllreduce<int>(context, call);
                 }),
        "algorithm: "))
        << before;
  }
}

TEST(DirectTest, WhoDoesNotComeIsNamedAtTheDeadline) {
  std::atomic<bool> over{false};
  const auto texts = outcomes(
      2,
      [&](const ContextPtr& context) {
        const Call call{5000, 0, false, 0, 0};
        testing_support::checkAllreduce<int>(context, call);
        if (context->rank == 1) {
          while (!over) {
            std::this_thread::yield();
          }
          return;
        }
        try {
          testing_support::checkAllreduce<int>(context, call);
        } catch (...) {
          over = true;
          throw;
        }
        over = true;
      },
      std::chrono::milliseconds(300));
  EXPECT_NE(std::string::npos, texts[0].find("Timed out")) << texts[0];
  EXPECT_NE(std::string::npos, texts[0].find("rank 1")) << texts[0];
}

// Also where nothing is waited for any more.
TEST(DirectTest, TheDeadlineEndsARankThatIsAtWork) {
  const auto texts = outcomes(2, [](const ContextPtr& context) {
    std::vector<int> values(1000);
    AllreduceOptions opts(context);
    opts.setOutput(values.data(), values.size());
    opts.setTimeout(std::chrono::milliseconds(300));
    const auto since = std::chrono::steady_clock::now();
    opts.setReduceFunction([&](void*, const void*, const void*, size_t) {
      while (std::chrono::steady_clock::now() - since <
             std::chrono::milliseconds(400)) {
        std::this_thread::yield();
      }
    });
    allreduce(opts);
  });
  EXPECT_TRUE(allSay(texts, "Timed out after 300 ms"));
}

TEST(DirectTest, WhoLeavesIsNamed) {
  const auto texts = outcomes(3, [](const ContextPtr& context) {
    barrier(BarrierOptions(context));
    if (context->rank == 1) {
      context->closeConnections();
      return;
    }
    barrier(BarrierOptions(context));
  });
  EXPECT_NE(std::string::npos, texts[0].find("rank 1 left")) << texts[0];
  EXPECT_NE(std::string::npos, texts[2].find("rank 1 left")) << texts[2];
}

TEST(DirectTest, FunctionsMayThrow) {
  const auto texts = outcomes(2, [](const ContextPtr& context) {
    std::vector<int> values(1000);
    AllreduceOptions opts(context);
    opts.setOutput(values.data(), values.size());
    const bool throws = context->rank == 1;
    opts.setReduceFunction([&](void*, const void*, const void*, size_t) {
      if (throws) {
        throw std::runtime_error("no more");
      }
    });
    allreduce(opts);
    barrier(BarrierOptions(context));
  });
  EXPECT_TRUE(allSay(texts, "no more"));
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
