// A collective on memory that all ranks have mapped has one deadline, however
// often it has to wait.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/context.h"
#include "gloo/math.h"
#include "gloo/transport/shm/device.h"
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

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
