// A process is killed or stopped at a random point of collectives that work on
// memory which all ranks have mapped: nothing moves over the links then, and
// still every other rank knows, and no result that was returned is wrong.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <random>
#include <stdexcept>

#include "gloo/common/string.h"
#include "gloo/transport/shm/device.h"
#include "tests/multiprocess/job.h"
#include "tests/support/collectives.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using testing_support::Call;
using testing_support::checkCollective;
using testing_support::kChecks;

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
    const std::string wrong =
        checkCollective<int32_t>((r >> 32) % kChecks, context, call);
    if (!wrong.empty()) {
      throw std::runtime_error(wrong);
    }
  }
}

void randomHarm(uint64_t seed, bool stop) {
  SCOPED_TRACE(MakeString("seed ", seed, stop ? ", stop" : ", kill"));
  std::mt19937_64 random(seed);
  Job::Options options;
  options.size = 2 + static_cast<int>(random() % 3);
  options.timeout = std::chrono::milliseconds(stop ? 300 * patience() : 30000);
  options.device = [](int) { return transport::shm::CreateDevice(); };
  const int victim =
      static_cast<int>(random() % static_cast<uint64_t>(options.size));
  Job job(options, [&](Child&, const std::shared_ptr<Context>& context) {
    randomCollectives(context, seed);
  });
  job.go();
  ::usleep(static_cast<useconds_t>(random() % 20000));
  const auto harmed = now();
  job.group().signal(victim, stop ? SIGSTOP : SIGKILL);
  if (!stop) {
    job.expectDeath(victim, harmed);
    return;
  }
  bool named = false;
  for (int rank = 0; rank < options.size; rank++) {
    if (rank != victim) {
      const Failure failure = job.failure(rank, std::chrono::seconds(20));
      EXPECT_TRUE(failure.names("Timed out")) << failure.text;
      named |= failure.names(MakeString("rank ", victim));
    }
  }
  EXPECT_TRUE(named) << "nobody names rank " << victim;
  job.group().signal(victim, SIGKILL);
  job.group().join(victim, std::chrono::seconds(5));
  job.group().joinAll(std::chrono::seconds(20));
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
