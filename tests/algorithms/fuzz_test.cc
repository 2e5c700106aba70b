// Random sequences of collectives on all ranks against an oracle.
#include <gtest/gtest.h>

#include <random>

#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/common/error.h"
#include "tests/algorithms/worlds.h"
#include "tests/support/collectives.h"

GLOO_NAMESPACE_BEGIN
namespace {

using testing_support::ContextPtr;
using testing_support::ContextWorld;
using testing_support::FakeOptions;

// The same on all ranks for the same seed.
class Script {
 public:
  explicit Script(unsigned seed) : random_(seed) {}
  size_t below(size_t n) { return random_() % n; }
  // Mostly small, sometimes large.
  size_t count() { return below(4) == 0 ? below(20000) : below(40); }

 private:
  std::mt19937 random_;
};

void sumOnce(const ContextPtr& context, Script& script, uint32_t tag) {
  const size_t count = script.count();
  const size_t local = 1 + script.below(3);
  const bool inPlace = script.below(2) == 0;
  constexpr const char* kNames[] = {nullptr, "ring", "bcube"};
  const char* const algorithm = kNames[script.below(3)];
  const size_t segment = 1 + script.below(5000);
  std::vector<std::vector<int64_t>> in(
      local, std::vector<int64_t>(count, context->rank));
  std::vector<std::vector<int64_t>> out(local, std::vector<int64_t>(count));
  std::vector<int64_t*> ins;
  std::vector<int64_t*> outs;
  for (size_t i = 0; i < local; i++) {
    ins.push_back(in[i].data());
    outs.push_back(out[i].data());
  }
  struct Named : AllreduceOptions {
    using AllreduceOptions::AllreduceOptions;
    using AllreduceOptions::setAlgorithmName;  // for short vectors as well
  } opts(context);
  if (!inPlace) {
    opts.setInputs(ins, count);
  }
  opts.setOutputs(inPlace ? ins : outs, count);
  void (*add)(void*, const void*, const void*, size_t) = &sum<int64_t>;
  opts.setReduceFunction(add);
  opts.setAlgorithmName(algorithm);
  opts.setMaxSegmentSize(segment);
  opts.setTag(tag);
  allreduce(opts);
  const int64_t size = context->size;
  const std::vector<int64_t> expected(
      count, static_cast<int64_t>(local) * size * (size - 1) / 2);
  for (const auto& result : inPlace ? in : out) {
    ASSERT_EQ(expected, result);
  }
}

void anyOnce(const ContextPtr& context, Script& script, uint32_t tag) {
  const size_t which = script.below(testing_support::kChecks);
  testing_support::Call call;
  call.count = script.count() / static_cast<size_t>(context->size);
  call.root = static_cast<int>(script.below(16));
  call.inPlace = script.below(2) == 0;
  call.tag = tag;
  call.seed = static_cast<unsigned>(script.below(100));
  const bool foreign = script.below(2) == 0;
  ASSERT_EQ("", foreign
                    ? testing_support::checkCollective<testing_support::Triple>(
                          which, context, call)
                    : testing_support::checkCollective<int16_t>(which, context,
                                                                call));
}

TEST(Fuzz, RandomCollectivesMatchTheOracle) {
  for (unsigned seed = 1; seed <= 40; seed++) {
    const int size = 1 + static_cast<int>(seed % 9);
    const FakeOptions options{seed % 2 == 0, seed, true, 0};
    ContextWorld world(size, options, 2 + static_cast<int>(seed % 3));
    world.run([&](const ContextPtr& context) {
      Script script(seed);
      for (int turn = 0; turn < 25; turn++) {
        const auto tag = static_cast<uint32_t>(script.below(3));
        switch (script.below(5)) {
          case 0: {
            BarrierOptions opts(context);
            opts.setTag(tag);
            barrier(opts);
            break;
          }
          case 1:
            sumOnce(context, script, tag);
            break;
          default:
            anyOnce(context, script, tag);
        }
      }
    });
    EXPECT_EQ(0u, world.world().pending()) << seed;
  }
}

// A rank that leaves out one call: an error, never wrong data and never a hang.
TEST(Fuzz, ASkippedCallIsAnErrorOnAllRanksThatNoticeIt) {
  for (unsigned seed = 1; seed <= 30; seed++) {
    ContextWorld world(3, {true, seed, true, 0});
    const auto errors = world.outcomes([&](const ContextPtr& context) {
      context->setTimeout(std::chrono::milliseconds(200));
      Script script(seed);
      for (size_t turn = 0; turn < 4; turn++) {
        const size_t count = 10 + turn;
        std::vector<int64_t> data(count, 1);
        AllreduceOptions opts(context);
        opts.setOutput(data.data(), count);
        void (*add)(void*, const void*, const void*, size_t) = &sum<int64_t>;
        opts.setReduceFunction(add);
        if (context->rank == 1 && turn == seed % 4) {
          continue;
        }
        allreduce(opts);
        ASSERT_EQ(std::vector<int64_t>(count, 3), data);
      }
    });
    EXPECT_THROW(std::rethrow_exception(errors[0]), IoException);
    EXPECT_THROW(std::rethrow_exception(errors[2]), IoException);
    EXPECT_EQ(0u, world.world().pending()) << seed;
  }
}

}  // namespace
GLOO_NAMESPACE_END
