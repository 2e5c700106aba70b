// A process is killed or stopped at a random point of collectives on one host:
// in memory that all ranks have mapped, where nothing moves over the links, and
// over the rings of the links. Every other rank knows, and no result that was
// returned is wrong.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <stdexcept>

#include "gloo/transport/auto/device.h"
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

// What the ranks are connected by, and whether collectives are direct.
struct Way {
  bool isAuto;
  bool isDirect;
};

// What is named goes over the links.
constexpr char kOverLinks[] =
    "allreduce=ring,reduce=binomial,broadcast=binomial,allgather=ring,"
    "allgatherv=ring,reduce_scatter=ring,reduce_scatterv=ring,"
    "alltoall=pairwise";

[[noreturn]] void randomCollectives(const std::shared_ptr<Context>& context,
                                    uint64_t seed) {
  std::mt19937_64 random(seed);
  for (uint32_t i = 0;; i++) {
    const uint64_t r = random();
    Call call;
    // In one lane, or in all of them by turns.
    call.tag = seed % 2 == 0 ? 0 : i;
    // Mostly small: those wait most.
    call.count = r % 5 == 0 ? r % 300000 : r % 1500;
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

void randomHarm(uint64_t seed, bool stop, Way way) {
  Job::Options options;
  options.device = [way](int) {
    if (!way.isDirect) {
      setenv("GLOO_ALGORITHM", kOverLinks, 1);
    }
    return way.isAuto ? transport::CreateDevice()
                      : transport::shm::CreateDevice();
  };
  harmAtRandom(seed, stop, options,
               [=](Child&, const std::shared_ptr<Context>& context) {
                 randomCollectives(context, seed);
               });
}

class DirectHarmTest : public ::testing::TestWithParam<int> {};

TEST_P(DirectHarmTest, EveryoneElseKnows) {
  constexpr int kKills = 17;
  const int turn = GetParam();
  const Way way{turn % 4 >= 2, turn % 2 == 0};
  for (int i = 0; i <= kKills && !HasFailure(); i++) {
    randomHarm(static_cast<uint64_t>(turn * 1000 + i), i == kKills, way);
  }
}

// 340 kills and 20 stops, as many of each way; RandomHarmTest has 160 kills of
// messages, half of them over the automatic device.
INSTANTIATE_TEST_SUITE_P(, DirectHarmTest, ::testing::Range(0, 20));

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
