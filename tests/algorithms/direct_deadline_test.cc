// A collective on memory that all ranks have mapped has one deadline, however
// often it has to wait.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "gloo/allgatherv.h"
#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/common/error.h"
#include "gloo/context.h"
#include "gloo/math.h"
#include "gloo/transport/shm/device.h"
#include "gloo/transport/unbound_buffer.h"
#include "tests/support/cores.h"
#include "tests/support/process_group.h"
#include "tests/support/spawn.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The other rank comes to each round late, but in less than the whole time.
TEST(DirectDeadline, IsOfAllRoundsTogether) {
  constexpr milliseconds kTimeout{150};
  constexpr milliseconds kTurn{60};
  std::array<std::string, 2> texts;
  steady_clock::duration took{};
  spawnContexts(
      Mode::kThreads, [] { return transport::shm::CreateDevice(); }, 2,
      [&](const std::shared_ptr<Context>& context) {
        barrier(BarrierOptions(context));  // nobody still connects
        std::vector<float> values(200000);
        AllreduceOptions opts(context);
        opts.setOutput(values.data(), values.size());
        if (context->rank == 0) {
          opts.setTimeout(kTimeout);
          opts.setReduceFunction(
              static_cast<void (*)(void*, const void*, const void*, size_t)>(
                  &sum<float>));
        } else {
          opts.setReduceFunction([&](void*, const void*, const void*, size_t) {
            const auto since = steady_clock::now();
            while (steady_clock::now() - since < kTurn) {
              std::this_thread::yield();
            }
          });
        }
        const auto since = steady_clock::now();
        try {
          allreduce(opts);
        } catch (const std::exception& e) {
          texts[static_cast<size_t>(context->rank)] = e.what();
        }
        if (context->rank == 0) {
          took = steady_clock::now() - since;
        }
      });
  for (const std::string& text : texts) {
    EXPECT_NE(std::string::npos, text.find("Timed out after 150 ms")) << text;
  }
  EXPECT_GE(took, kTimeout);
  EXPECT_LT(took, kTimeout + std::chrono::seconds(1) * slowness());
}

TEST(DirectDeadline, TellsTheBytesAlsoOfCountsForEachRank) {
  std::string text;
  spawnContexts(
      Mode::kThreads, [] { return transport::shm::CreateDevice(); }, 2,
      [&](const std::shared_ptr<Context>& context) {
        barrier(BarrierOptions(context));
        auto never = context->createUnboundBuffer(nullptr, 0);
        if (context->rank == 1) {
          never->recv(0, 1);
          EXPECT_THROW(never->waitRecv(), std::exception);
          return;
        }
        std::vector<float> all(8);
        AllgathervOptions opts(context);
        opts.setOutput(all.data(), std::vector<size_t>{3, 5});
        opts.setTimeout(milliseconds(50));
        try {
          allgatherv(opts);
        } catch (const TimeoutException& e) {
          text = e.what();
        }
      });
  EXPECT_NE(std::string::npos, text.find("(direct): 32 bytes")) << text;
}

// Who has no core of its own gives it away while it waits, for as long as they
// like to those that compute.
TEST(DirectDeadline, IsMetBesideNeighboursThatCompute) {
  constexpr milliseconds kTimeout{50};
  constexpr size_t kNeighbours = 6;
  const auto onOneCore = [] {
    stayOn(0, 1);
    return transport::shm::CreateDevice();
  };
  spawnContexts(Mode::kProcesses, onOneCore, 2,
                [&](const std::shared_ptr<Context>& context) {
                  BarrierOptions opts(context);
                  barrier(opts);
                  if (context->rank == 1) {
                    auto never = context->createUnboundBuffer(nullptr, 0);
                    never->recv(0, 1);
                    EXPECT_THROW(never->waitRecv(), TimeoutException);
                    return;
                  }
                  std::atomic<bool> over{false};
                  std::vector<std::thread> neighbours;
                  for (size_t i = 0; i < kNeighbours; i++) {
                    neighbours.emplace_back([&] {
                      while (!over) {
                      }
                    });
                  }
                  opts.setTimeout(kTimeout);
                  const auto since = steady_clock::now();
                  EXPECT_THROW(barrier(opts), TimeoutException);
                  EXPECT_LT(steady_clock::now() - since,
                            kTimeout + std::chrono::seconds(1) * slowness());
                  over = true;
                  for (std::thread& neighbour : neighbours) {
                    neighbour.join();
                  }
                });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
