// What two ranks pass through one place, each way that a rank may do it
// (Lane::PassTrial): results against the oracle, until a way was chosen.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <vector>

#include "gloo/allgatherv.h"
#include "gloo/context.h"
#include "gloo/internal/direct.h"
#include "gloo/transport/shm/device.h"
#include "gloo/types.h"
#include "tests/algorithms/lanes.h"
#include "tests/support/collectives.h"
#include "tests/support/spawn.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using testing_support::Call;
using ContextPtr = std::shared_ptr<Context>;

constexpr int kCalls = 2 * internal::Lane::PassTrial::kTries + 2;

void onTwoRanks(const std::function<void(const ContextPtr&)>& body) {
  spawnContexts(
      Mode::kThreads, [] { return transport::shm::CreateDevice(); }, 2, body);
}

// One piece, several, and a short one among them.
template <typename T>
void checkAll(const ContextPtr& context, size_t count) {
  for (size_t which = 0; which < testing_support::kChecks; which++) {
    for (int call = 0; call < kCalls; call++) {
      const auto seed = static_cast<unsigned>(call);
      ASSERT_EQ("",
                testing_support::checkCollective<T>(
                    which, context, Call{count, call, call % 2 == 1, 0, seed}))
          << count << ", call " << call;
    }
  }
}

TEST(PassesTest, GiveTheSameEachWay) {
  onTwoRanks([](const ContextPtr& context) {
    for (const size_t count : {10000, 33000, 200001}) {
      checkAll<float>(context, count);
    }
    checkAll<testing_support::Triple>(context, 30001);  // by a function
  });
}

TEST(PassesTest, TakePartsOfAnyLengths) {
  onTwoRanks([](const ContextPtr& context) {
    const size_t slot = laneOf(context, kAllgatherSlotPrefix, 0).slotBytes();
    const std::vector<std::vector<size_t>> shapes = {
        {slot, 0},         {0, 1},     {1, 3 * slot}, {2 * slot + 1, slot},
        {slot, slot + 77}, {105, 104}, {0, 5 * slot}};
    for (const std::vector<size_t>& counts : shapes) {
      for (int call = 0; call < kCalls; call++) {
        const auto bytesOf = [&](int rank) {
          std::vector<char> bytes(counts[static_cast<size_t>(rank)]);
          std::iota(bytes.begin(), bytes.end(), static_cast<char>(call + rank));
          return bytes;
        };
        std::vector<char> expected = bytesOf(0);
        const std::vector<char> second = bytesOf(1);
        expected.insert(expected.end(), second.begin(), second.end());
        std::vector<char> input = bytesOf(context->rank);
        std::vector<char> output(expected.size());
        AllgathervOptions opts(context);
        opts.setInput(input.data(), input.size());
        opts.setOutput(output.data(), counts);
        allgatherv(opts);
        ASSERT_EQ(expected, output)
            << counts[0] << " and " << counts[1] << " bytes, call " << call;
      }
    }
  });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
