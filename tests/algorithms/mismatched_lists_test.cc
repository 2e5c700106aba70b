// Lists of counts that differ on one rank, although all add up to the same: a
// check word has only a hash of them, yet every rank is told which count it is,
// and what it is on both ranks; over messages and in mapped memory.
#include <gtest/gtest.h>

#include <functional>

#include "gloo/allgatherv.h"
#include "gloo/barrier.h"
#include "gloo/common/error.h"
#include "gloo/context.h"
#include "gloo/math.h"
#include "gloo/reduce_scatterv.h"
#include "tests/support/process_group.h"
#include "tests/support/transports.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using ContextPtr = std::shared_ptr<Context>;
using CountList = std::vector<size_t>;
using Call = std::function<void(const ContextPtr&, const CountList&)>;

void gatherAll(const ContextPtr& context, const CountList& counts) {
  std::vector<int> all(6);
  AllgathervOptions opts(context);
  opts.setOutput(all.data(), counts);
  allgatherv(opts);
}

void reduceAndScatter(const ContextPtr& context, const CountList& counts) {
  std::vector<int> all(6);
  ReduceScattervOptions opts(context);
  opts.setOutput(all.data(), counts);
  opts.setReduceFunction(
      static_cast<void (*)(void*, const void*, const void*, size_t)>(
          &sum<int>));
  reduce_scatterv(opts);
}

class MismatchedLists : public ::testing::TestWithParam<std::string> {
 protected:
  // Of three ranks the last has two counts the other way round.
  static void expectNamed(const Call& call) {
    for (const TestTransport& transport : transports()) {
      if (transport.name != GetParam()) {
        continue;
      }
      spawnContexts(
          Mode::kThreads, transport.make, 3,
          [&](const ContextPtr& context) { expectNamedBy(context, call); });
    }
  }

  static void expectNamedBy(const ContextPtr& context, const Call& call) {
    auto start = now();
    try {
      barrier(BarrierOptions(context));  // nobody still connects
      start = now();
      call(context,
           context->rank == 2 ? CountList{1, 3, 2} : CountList{1, 2, 3});
      ADD_FAILURE() << "no error";
    } catch (const MismatchException& e) {
      const std::string text = e.what();
      for (const char* part :
           {"number of elements of rank 1: ", "3 on rank 2"}) {
        EXPECT_NE(std::string::npos, text.find(part)) << text;
      }
      EXPECT_TRUE(text.find("2 on rank 0") != std::string::npos ||
                  text.find("2 on rank 1") != std::string::npos)
          << text;
    }
    EXPECT_LT(now() - start, std::chrono::seconds(1) * slowness());
  }
};

TEST_P(MismatchedLists, OfAllgatherv) { expectNamed(gatherAll); }
TEST_P(MismatchedLists, OfReduceScatterv) { expectNamed(reduceAndScatter); }

INSTANTIATE_TEST_SUITE_P(, MismatchedLists, ::testing::Values("tcp", "shm"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
