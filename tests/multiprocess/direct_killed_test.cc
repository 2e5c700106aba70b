// A process is killed or stopped at a random point of collectives that work on
// memory which all ranks have mapped: nothing moves over the links then, and
// still every other rank knows, and no result that was returned is wrong.
#include <gtest/gtest.h>

#include <random>
#include <stdexcept>

#include "gloo/transport/shm/device.h"
#include "tests/multiprocess/job.h"
#include "tests/support/collectives.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using testing_support::Call;
using testing_support::checkCollective;
using testing_support::kChecks;
using testing_support::VectorArena;
using testing_support::VectorMemory;

[[noreturn]] void randomCollectives(const std::shared_ptr<Context>& context,
                                    uint64_t seed) {
  std::mt19937_64 random(seed);
  while (true) {
    const uint64_t r = random();
    Call call;
    // Mostly small: those wait most.
    call.count = r % 5 == 0 ? r % 90000 : r % 1500;
    call.root = static_cast<int>((r >> 40) % 8);
    call.inPlace = (r >> 44) % 2 == 0;
    call.seed = static_cast<unsigned>(r >> 50);
    // Memory that the others write to: all ranks', or one's.
    const bool isShared = (r >> 45) % 2 == 0 &&
                          ((r >> 46) % 4 != 0 || context->rank == call.root);
    VectorArena::mine().use(!isShared            ? VectorMemory::kOrdinary
                            : (r >> 48) % 4 == 0 ? VectorMemory::kShared
                                                 : VectorMemory::kArena);
    const std::string wrong =
        checkCollective<int32_t>((r >> 32) % kChecks, context, call);
    if (!wrong.empty()) {
      throw std::runtime_error(wrong);
    }
  }
}

void randomHarm(uint64_t seed, bool stop) {
  Job::Options options;
  options.device = [](int) { return transport::shm::CreateDevice(); };
  harmAtRandom(seed, stop, options,
               [seed](Child&, const std::shared_ptr<Context>& context) {
                 randomCollectives(context, seed);
               });
}

class DirectHarmTest : public ::testing::TestWithParam<int> {};

TEST_P(DirectHarmTest, EveryoneElseKnows) {
  constexpr int kKills = 15;
  constexpr int kStops = 2;
  for (int i = 0; i < kKills + kStops && !HasFailure(); i++) {
    randomHarm(static_cast<uint64_t>(GetParam() * 1000 + i), i >= kKills);
  }
}

// 60 kills and 8 stops.
INSTANTIATE_TEST_SUITE_P(, DirectHarmTest, ::testing::Range(0, 4));

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
