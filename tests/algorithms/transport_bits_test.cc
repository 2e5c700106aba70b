// The bits of reductions over real transports: the same on all ranks, in every
// run of a context and in other contexts, and on every kind of processor.
#include <gtest/gtest.h>

#include <cstring>
#include <mutex>
#include <vector>

#include "gloo/allgather.h"
#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/common/string.h"
#include "gloo/context.h"
#include "gloo/math.h"
#include "gloo/reduce.h"
#include "gloo/reduce_scatter.h"
#include "gloo/reduce_scatterv.h"
#include "tests/algorithms/bit_values.h"
#include "tests/core/targets.h"
#include "tests/support/transports.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using testing_support::bitValues;
using ContextPtr = std::shared_ptr<Context>;
using Bytes = std::vector<char>;
using Function = void (*)(void*, const void*, const void*, size_t);

void append(Bytes& all, const void* data, size_t bytes) {
  const auto* const from = static_cast<const char*>(data);
  all.insert(all.end(), from, from + bytes);
}

// Of what an allreduce of T left: empty, or which rank has other bits.
template <typename T>
std::string differsFromOthers(const ContextPtr& context,
                              const std::vector<T>& own) {
  std::vector<T> all(own.size() * static_cast<size_t>(context->size));
  AllgatherOptions opts(context);
  opts.setInput(const_cast<T*>(own.data()), own.size());
  opts.setOutput(all.data(), all.size());
  allgather(opts);
  for (int rank = 0; rank < context->size; rank++) {
    if (std::memcmp(own.data(), &all[static_cast<size_t>(rank) * own.size()],
                    own.size() * sizeof(T)) != 0) {
      return MakeString("rank ", rank, " has other bits than rank ",
                        context->rank);
    }
  }
  return {};
}

// Every collective that reduces, and the average.
template <typename T>
void addResults(Bytes& all, const ContextPtr& context, size_t count,
                Function function) {
  const auto size = static_cast<size_t>(context->size);
  const auto in = bitValues<T>(context->rank, count * size);
  std::vector<T> out(in.size());
  const auto run = [&](auto opts, const auto& call, size_t outputs, bool has) {
    opts.setInput(const_cast<T*>(in.data()), in.size());
    opts.setOutput(out.data(), outputs);
    opts.setReduceFunction(function);
    call(opts);
    if (has) {
      append(all, out.data(), outputs * sizeof(T));
    }
  };
  run(
      AllreduceOptions(context), [](auto& o) { allreduce(o); }, in.size(),
      true);
  EXPECT_EQ("", differsFromOthers(context, out));
  run(
      ReduceOptions(context),
      [&](auto& o) {
        o.setRoot(context->size - 1);
        reduce(o);
      },
      in.size(), context->rank == context->size - 1);
  run(
      ReduceScatterOptions(context), [](auto& o) { reduce_scatter(o); }, count,
      true);
  std::vector<size_t> counts(size, count - 1);
  counts[0] += size;
  ReduceScattervOptions opts(context);
  opts.setInput(const_cast<T*>(in.data()), counts);
  const size_t part = counts[static_cast<size_t>(context->rank)];
  opts.setOutput(out.data(), part);
  opts.setReduceFunction(function);
  reduce_scatterv(opts);
  append(all, out.data(), part * sizeof(T));
}

template <typename T>
void addAverage(Bytes& all, const ContextPtr& context, size_t count) {
  auto values = bitValues<T>(context->rank, count);
  AllreduceOptions opts(context);
  opts.setOutput(values.data(), count);
  opts.setReduceFunction(average<T>);
  allreduce(opts);
  EXPECT_EQ("", differsFromOthers(context, values));
  append(all, values.data(), count * sizeof(T));
}

template <typename T>
void addType(Bytes& all, const ContextPtr& context, size_t count) {
  addResults<T>(all, context, count, static_cast<Function>(&sum<T>));
  addResults<T>(all, context, count, static_cast<Function>(&product<T>));
  addResults<T>(all, context, count, static_cast<Function>(&min<T>));
  addResults<T>(all, context, count, static_cast<Function>(&max<T>));
  if constexpr (!std::is_integral_v<T>) {
    addAverage<T>(all, context, count);
  }
}

Bytes resultsOf(const ContextPtr& context, size_t count) {
  Bytes all;
  addType<float>(all, context, count);
  addType<double>(all, context, count);
  addType<float16>(all, context, count);
  addType<bfloat16>(all, context, count);
  addType<int32_t>(all, context, count);
  return all;
}

class TransportBitsTest : public ::testing::TestWithParam<TestTransport> {
 protected:
  void SetUp() override { SKIP_UNLESS_AVAILABLE(GetParam()); }

  // What each rank of a new context has, in each of `runs`.
  std::vector<Bytes> results(int size, size_t count, int runs) {
    std::vector<Bytes> all(static_cast<size_t>(size));
    spawnContexts(Mode::kThreads, GetParam().make, size,
                  [&](const ContextPtr& context) {
                    Bytes& own = all[static_cast<size_t>(context->rank)];
                    own = resultsOf(context, count);
                    for (int run = 1; run < runs; run++) {
                      EXPECT_EQ(own, resultsOf(context, count));
                    }
                    barrier(BarrierOptions(context));
                  });
    return all;
  }
};

// The second count's vectors are long enough for other algorithms.
TEST_P(TransportBitsTest, AreTheSameOnAllRanksAndInEveryRun) {
  for (const int size : {2, 3, 5, 8}) {
    for (const size_t count : {7, 4001}) {
      const auto first = results(size, count, 3);
      EXPECT_TRUE(first == results(size, count, 1))
          << size << " ranks, count " << count;
    }
  }
}

TEST_P(TransportBitsTest, AreTheSameOnEveryKindOfProcessor) {
  std::vector<Bytes> first;
  ::gloo::testing::forEachTarget([&](const std::string& target) {
    const auto again = results(4, 701, 1);
    if (first.empty()) {
      first = again;
    }
    EXPECT_TRUE(first == again) << target;
  });
}

std::vector<TestTransport> someTransports() {
  std::vector<TestTransport> some;
  for (const TestTransport& transport : transports()) {
    if (transport.name != "tcp_shm_lazy" &&
        transport.name != "shm_two_copies" &&
        transport.name != "ibverbs_lazy") {
      some.push_back(transport);
    }
  }
  return some;
}

INSTANTIATE_TEST_SUITE_P(, TransportBitsTest,
                         ::testing::ValuesIn(someTransports()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
