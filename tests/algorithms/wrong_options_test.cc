// What a caller gets wrong is said before anything is sent.
#include <gtest/gtest.h>

#include <climits>
#include <cstdint>

#include "gloo/allgather.h"
#include "gloo/allgather_ring.h"
#include "gloo/allgatherv.h"
#include "gloo/allreduce.h"
#include "gloo/allreduce_local.h"
#include "gloo/allreduce_ring.h"
#include "gloo/alltoall.h"
#include "gloo/alltoallv.h"
#include "gloo/broadcast_one_to_all.h"
#include "gloo/common/logging.h"
#include "gloo/gather.h"
#include "gloo/gatherv.h"
#include "gloo/pairwise_exchange.h"
#include "gloo/reduce.h"
#include "gloo/reduce_scatter.h"
#include "gloo/reduce_scatterv.h"
#include "gloo/scatter.h"
#include "tests/algorithms/worlds.h"
#include "tests/support/collectives.h"

GLOO_NAMESPACE_BEGIN
namespace {

using testing_support::adder;
using testing_support::ContextPtr;
using testing_support::ContextWorld;

// Of two ranks, calls as rank 0.
class WrongOptions : public testing::Test {
 protected:
  ~WrongOptions() override { EXPECT_EQ(0u, world_.world().posted()); }

  // The text of the error must have `says` in it.
  template <typename Call>
  void expectError(const std::string& says, const Call& call) {
    try {
      call();
      ADD_FAILURE() << "no error: " << says;
    } catch (const InvalidOperationException& e) {
      EXPECT_NE(std::string::npos, std::string(e.what()).find(says))
          << e.what();
    }
  }

  ContextWorld world_{2};
  const ContextPtr& context_ = world_.context(0);
  std::vector<float> data_ = std::vector<float>(20);
  float* const at_ = data_.data();
};

TEST_F(WrongOptions, OfReduce) {
  ReduceOptions opts(context_);
  opts.setReduceFunction(adder<float>());
  expectError("setRoot", [&] { reduce(opts); });
  opts.setRoot(0);
  expectError("no output", [&] { reduce(opts); });
  opts.setOutput(at_, 10);
  opts.setInput(at_ + 10, 9);
  expectError("must have 9 elements", [&] { reduce(opts); });
  opts.setInput(at_ + 5, 10);
  expectError("overlap", [&] { reduce(opts); });
  opts.setInput(at_ + 10, 10);
  opts.setReduceFunction(AllreduceOptions::Func());
  expectError("setReduceFunction", [&] { reduce(opts); });
  opts.setReduceFunction(average<double>);
  expectError("float64", [&] { reduce(opts); });
}

TEST_F(WrongOptions, OfScatter) {
  ScatterOptions opts(context_);
  opts.setOutput(at_, 10);
  expectError("setRoot", [&] { scatter(opts); });
  opts.setRoot(2);
  expectError("root 2 is not a rank", [&] { scatter(opts); });
  opts.setRoot(0);
  expectError("one input for each rank", [&] { scatter(opts); });
  opts.setInputs(std::vector<float*>{at_ + 10, at_ + 12, at_ + 14}, 2);
  expectError("one input for each rank", [&] { scatter(opts); });
  opts.setInputs(std::vector<float*>{at_ + 10, at_ + 12}, 2);
  expectError("must have 10 elements", [&] { scatter(opts); });
  opts.setInputs(std::vector<float*>{at_ + 10, at_}, 10);
  expectError("the input for rank 1", [&] { scatter(opts); });
  opts.setInputs(std::vector<float*>{at_ + 10, at_ + 5}, 10);
  expectError("overlap", [&] { scatter(opts); });
  opts.setInputs(std::vector<float*>{at_ + 10, nullptr}, 10);
  expectError("input 1 is null", [&] { scatter(opts); });
  opts.setRoot(1);
  ScatterOptions other(context_);
  other.setRoot(1);
  expectError("no output", [&] { scatter(other); });
}

TEST_F(WrongOptions, OfGather) {
  GatherOptions opts(context_);
  opts.setRoot(0);
  opts.setInput(at_, 5);
  expectError("no output", [&] { gather(opts); });
  opts.setOutput(at_ + 5, 11);
  expectError("no multiple of the 2 ranks", [&] { gather(opts); });
  opts.setOutput(at_ + 5, 12);
  expectError("must have 6 elements", [&] { gather(opts); });
  opts.setOutput(at_ + 4, 10);
  expectError("overlap", [&] { gather(opts); });
  GatherOptions other(context_);
  other.setRoot(1);
  expectError("no input", [&] { gather(other); });
}

TEST_F(WrongOptions, OfGatherv) {
  GathervOptions opts(context_);
  opts.setRoot(0);
  opts.setOutput(at_, std::vector<size_t>{1, 2, 3});
  expectError("one count for each of the 2 ranks", [&] { gatherv(opts); });
  opts.setOutput(at_, std::vector<size_t>{3, 7});
  opts.setInput(at_ + 10, 4);
  expectError("must have 3 elements", [&] { gatherv(opts); });
}

TEST_F(WrongOptions, OfAllgather) {
  AllgatherOptions opts(context_);
  expectError("no output", [&] { allgather(opts); });
  opts.setOutput(at_, 9);
  expectError("no multiple", [&] { allgather(opts); });
  opts.setOutput(at_, 10);
  opts.setInput(at_ + 5, 5);
  expectError("begins at byte 0", [&] { allgather(opts); });
  AllgathervOptions counted(context_);
  counted.setOutput(at_, std::vector<size_t>{4});
  expectError("one count for each", [&] { allgatherv(counted); });
  counted.setOutput(at_, std::vector<size_t>{4, 6});
  counted.setInput(at_ + 10, 6);
  expectError("must have 4 elements", [&] { allgatherv(counted); });
}

TEST_F(WrongOptions, OfAlltoall) {
  AlltoallOptions opts(context_);
  opts.setOutput(at_, 10);
  opts.setInput(at_ + 10, 8);
  expectError("must have 10 elements", [&] { alltoall(opts); });
  AlltoallvOptions counted(context_);
  expectError("is negative: -1", [&] {
    counted.setInput(at_, std::vector<int64_t>{1, -1});
  });
  counted.setInput(at_, std::vector<int64_t>{1, 2});
  counted.setOutput(at_ + 10, std::vector<int64_t>{2, 2});
  expectError("counts for itself differ", [&] { alltoallv(counted); });
  counted.setOutput(at_ + 10, std::vector<int64_t>{2});
  expectError("one count for each", [&] { alltoallv(counted); });
}

TEST_F(WrongOptions, OfReduceScatter) {
  ReduceScatterOptions opts(context_);
  opts.setReduceFunction(adder<float>());
  opts.setInput(at_, 9);
  opts.setOutput(at_ + 10, 5);
  expectError("no multiple", [&] { reduce_scatter(opts); });
  opts.setInput(at_, 10);
  opts.setOutput(at_ + 10, 6);
  expectError("must have 5 elements", [&] { reduce_scatter(opts); });
  ReduceScattervOptions counted(context_);
  counted.setReduceFunction(adder<float>());
  counted.setInput(at_, std::vector<size_t>{4, 6});
  counted.setOutput(at_ + 10, 5);
  expectError("must have 4 elements", [&] { reduce_scatterv(counted); });
}

// Sums and products that wrap would pass for short vectors.
TEST_F(WrongOptions, OfCountsThatNoMemoryHolds) {
  const std::string says = "no memory holds";
  const std::vector<size_t> wrapping{SIZE_MAX, 6};
  const std::vector<size_t> together{SIZE_MAX / 16 + 1, SIZE_MAX / 16 + 1};
  AllgathervOptions opts(context_);
  expectError(says, [&] { opts.setOutput(at_, wrapping); });
  expectError(says, [&] { opts.setOutput(at_, together); });
  expectError(says, [&] {
    opts.setOutput<float>(context_->createUnboundBuffer(at_, 20), wrapping);
  });
  expectError(says, [&] { opts.setInput(at_, SIZE_MAX / 4 + 2); });
  AlltoallvOptions counted(context_);
  expectError(says, [&] {
    counted.setInput(at_, std::vector<int64_t>{INT64_MAX, INT64_MAX});
  });
  AllreduceOptions several(context_);
  expectError(says, [&] {
    several.setOutputs(std::vector<float*>{at_}, size_t{1} << 62);
  });
}

// They would be taken for none.
TEST_F(WrongOptions, OfNegativeTimeouts) {
  const std::string says = "-5 ms";
  const std::chrono::milliseconds negative(-5);
  AllreduceOptions opts(context_);
  expectError(says, [&] { opts.setTimeout(negative); });
  opts.setTimeout(std::chrono::milliseconds(0));
  opts.setTimeout(transport::UnboundBuffer::kUnsetTimeout);
  expectError(says, [&] { context_->setTimeout(negative); });
  testing_support::FakeTransportContext below(world_.world().channel(0));
  expectError(says, [&] { below.setTimeout(negative); });
}

TEST_F(WrongOptions, OfSeveralOutputs) {
  AllreduceOptions opts(context_);
  opts.setReduceFunction(adder<float>());
  opts.setOutputs(std::vector<float*>{at_, at_ + 10, at_ + 9}, 10);
  expectError("outputs 0 and 2 overlap", [&] { allreduce(opts); });
  opts.setOutputs(std::vector<float*>{at_, at_}, 10);
  expectError("outputs 0 and 1 overlap", [&] { allreduce(opts); });
  expectError("outputs 0 and 1 overlap", [&] {
    AllreduceRing<float>(context_, {at_, at_ + 1}, 10);
  });
  // Of many, the two are found among neighbours.
  std::vector<float> many(100 * 10);
  std::vector<float*> outputs;
  for (size_t i = 0; i < 100; i++) {
    outputs.push_back(many.data() + i * 37 % 100 * 10);
  }
  outputs[70]--;
  opts.setOutputs(outputs, 10);
  expectError("outputs 70 and 97 overlap", [&] { allreduce(opts); });
}

TEST_F(WrongOptions, AnAverageOfAnotherType) {
  std::vector<int32_t> numbers(4);
  AllreduceOptions opts(context_);
  opts.setOutput(numbers.data(), numbers.size());
  opts.setReduceFunction(average<float>);
  expectError("the average is for float32", [&] { allreduce(opts); });
}

TEST_F(WrongOptions, OfObjects) {
  expectError("do not add up", [&] {
    ReduceScatterHalvingDoubling<float>(context_, {at_}, 20, {10, 9});
  });
  expectError("one count for each", [&] {
    ReduceScatterHalvingDoubling<float>(context_, {at_}, 20, {20});
  });
  expectError("is negative", [&] {
    ReduceScatterHalvingDoubling<float>(context_, {at_}, 20, {21, -1});
  });
  expectError("power of the destinations",
              [&] { PairwiseExchange(context_, 100, 2); });
  expectError("less than a byte", [&] { PairwiseExchange(context_, 0, 1); });
}

// Nor is memory asked for by what a product that wrapped has left.
TEST_F(WrongOptions, OfObjectsWithCountsThatNoMemoryHolds) {
  const std::string negative = "is negative: -5";
  expectError(negative, [&] { AllreduceRing<float>(context_, {at_}, -5); });
  expectError(negative, [&] { AllreduceLocal<float>(context_, {at_}, -5); });
  expectError(negative,
              [&] { AllgatherRing<float>(context_, {at_}, at_ + 10, -5); });
  expectError(negative, [&] {
    ReduceScatterHalvingDoubling<float>(context_, {at_}, -5, {2, 3});
  });
  const std::string says = "no memory holds";
  for (const size_t count : {SIZE_MAX, SIZE_MAX / 4 + 2, SIZE_MAX / 8 + 1}) {
    expectError(says,
                [&] { BroadcastOneToAll<float>(context_, {at_}, count); });
  }
  // Only the result is too long.
  struct Large {
    char bytes[size_t{1} << 31];
  };
  auto* const large = reinterpret_cast<Large*>(at_);
  expectError(says, [&] {
    AllgatherRing<Large>(context_, {large, large}, large, INT_MAX);
  });
}

TEST_F(WrongOptions, AnAllgatherRingWhoseInputsLieInItsOutput) {
  const auto ring = [&](std::vector<const float*> inputs) {
    AllgatherRing<float>(context_, inputs, at_, 10);
  };
  ring({at_, at_ + 10});  // in place
  for (const ptrdiff_t offset : {1, 9, 11, 19}) {
    expectError("overlap", [&] { ring({at_, at_ + offset}); });
  }
  expectError("overlap", [&] { ring({at_ + 10, at_}); });
}

TEST_F(WrongOptions, ANullFunctionOfAClass) {
  expectError("null", [&] {
    AllreduceRing<float>(context_, {at_}, 10,
                         static_cast<const ReductionFunction<float>*>(nullptr));
  });
}

}  // namespace
GLOO_NAMESPACE_END
