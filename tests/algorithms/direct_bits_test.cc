// Results of float sums depend on the order of the operands: it is the same on
// all ranks, and whether an operation runs in a lane or goes over the links.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "gloo/allgather.h"
#include "gloo/allreduce.h"
#include "gloo/context.h"
#include "gloo/reduce.h"
#include "gloo/reduce_scatter.h"
#include "gloo/transport/shm/device.h"
#include "tests/algorithms/lanes.h"
#include "tests/support/collectives.h"
#include "tests/support/spawn.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using ContextPtr = std::shared_ptr<Context>;

std::shared_ptr<transport::Device> makeDevice() {
  return transport::shm::CreateDevice();
}

TEST(DirectBitsTest, ResultsAreTheSameBitsOnAllRanks) {
  for (const int size : {2, 3, 4, 8}) {
    spawnContexts(Mode::kThreads, makeDevice, size, [&](const auto& context) {
      for (const size_t count : {3, 900, 50000}) {
        std::vector<float> values(count);
        for (size_t i = 0; i < count; i++) {
          values[i] = 1.0f / static_cast<float>(i + 3 * context->rank + 1);
        }
        AllreduceOptions opts(context);
        opts.setOutput(values.data(), count);
        opts.setReduceFunction(testing_support::adder<float>());
        allreduce(opts);
        std::vector<float> all(count * size);
        AllgatherOptions gather(context);
        gather.setInput(values.data(), count);
        gather.setOutput(all.data(), all.size());
        allgather(gather);
        for (int rank = 0; rank < size; rank++) {
          ASSERT_EQ(0, std::memcmp(values.data(), all.data() + rank * count,
                                   count * sizeof(float)));
        }
      }
    });
  }
}

// Sums whose bits depend on the order of the terms, by each reduction: of this
// rank's `count` elements for each rank.
std::vector<float> sums(const ContextPtr& context, size_t count, uint32_t tag) {
  const auto size = static_cast<size_t>(context->size);
  std::vector<float> in(count * size);
  for (size_t i = 0; i < in.size(); i++) {
    in[i] = 1.0f / static_cast<float>(i + 3 * context->rank + 1);
  }
  std::vector<float> all;
  std::vector<float> out(in.size());
  const auto run = [&](auto opts, const auto& call, size_t outputs) {
    opts.setInput(in.data(), in.size());
    opts.setOutput(out.data(), outputs);
    opts.setReduceFunction(testing_support::adder<float>());
    opts.setTag(tag);
    call(opts);
    all.insert(all.end(), out.begin(), out.begin() + outputs);
  };
  run(
      AllreduceOptions(context), [](auto& o) { allreduce(o); }, in.size());
  run(
      ReduceOptions(context),
      [&](auto& o) {
        o.setRoot(context->size - 1);
        reduce(o);
      },
      in.size());
  run(
      ReduceScatterOptions(context), [](auto& o) { reduce_scatter(o); }, count);
  return all;
}

// Whether an operation finds an idle lane depends on when the others have left
// theirs.
TEST(DirectBitsTest, ResultsAreTheSameBitsWithAndWithoutALane) {
  for (const int size : {2, 3, 4, 5, 8}) {
    for (const size_t count : {1, 300, 9000}) {
      spawnContexts(Mode::kThreads, makeDevice, size, [&](const auto& context) {
        const std::vector<float> inLanes = sums(context, count, 1);
        const AllLanes taken(context, 100);
        const std::vector<float> overLinks = sums(context, count, 2);
        ASSERT_EQ(inLanes.size(), overLinks.size());
        ASSERT_EQ(0, std::memcmp(inLanes.data(), overLinks.data(),
                                 inLanes.size() * sizeof(float)))
            << size << " ranks, count " << count;
      });
    }
  }
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
