// Buffers that the caller keeps are registered by the first collective that
// uses them, and by none after it: here the collectives that are not in
// counts_test.cc.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "gloo/allgather.h"
#include "gloo/allgatherv.h"
#include "gloo/alltoall.h"
#include "gloo/alltoallv.h"
#include "gloo/gather.h"
#include "gloo/gatherv.h"
#include "gloo/internal/statistics.h"
#include "gloo/math.h"
#include "gloo/reduce.h"
#include "gloo/reduce_scatter.h"
#include "gloo/reduce_scatterv.h"
#include "gloo/scatter.h"
#include "tests/support/spawn.h"
#include "tests/transport/ibverbs/fake_devices.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using ContextPtr = std::shared_ptr<Context>;
using BufferPtr = std::shared_ptr<transport::UnboundBuffer>;

// Elements: goes straight into memory, and not in one message.
constexpr size_t kPart = 3 << 17;
constexpr int kRoot = 1;

// What a collective of one rank works on: a part, and one of each rank.
struct Buffers {
  explicit Buffers(const ContextPtr& c)
      : context(c),
        size(static_cast<size_t>(c->size)),
        partData(kPart, 1),
        inData(kPart * size, 1),
        outData(kPart * size),
        part(make(partData)),
        in(make(inData)),
        out(make(outData)),
        counts(size, kPart),
        signedCounts(size, kPart) {}

  BufferPtr make(std::vector<float>& data) const {
    return context->createUnboundBuffer(data.data(),
                                        data.size() * sizeof(float));
  }
  bool isRoot() const { return context->rank == kRoot; }

  const ContextPtr context;
  const size_t size;
  std::vector<float> partData;
  std::vector<float> inData;
  std::vector<float> outData;
  const BufferPtr part;
  const BufferPtr in;
  const BufferPtr out;
  const std::vector<size_t> counts;
  const std::vector<int64_t> signedCounts;
};

template <typename Options>
void setSum(Options& opts) {
  void (*add)(void*, const void*, const void*, size_t) = &sum<float>;
  opts.setReduceFunction(add);
}

void expectRegisteredOnce(const char* name, const ContextPtr& context,
                          const std::function<void()>& call) {
  call();
  call();  // with all scratch memory that there will be
  const auto& device = *context->getDevice();
  const auto before = internal::statisticsOf(device);
  call();
  call();
  const auto after = internal::statisticsOf(device);
  EXPECT_EQ(after.eagerSent, before.eagerSent) << name;
  EXPECT_EQ(after.registrations, before.registrations) << name;
}

void checkReduce(const Buffers& b) {
  ReduceOptions toRoot(b.context);
  toRoot.setInput<float>(b.in);
  toRoot.setOutput<float>(b.out);
  toRoot.setRoot(kRoot);
  setSum(toRoot);
  expectRegisteredOnce("reduce", b.context, [&] { reduce(toRoot); });
  if (b.isRoot()) {
    EXPECT_EQ(static_cast<float>(b.size), b.outData.back());
  }
}

void checkReduceScatter(const Buffers& b) {
  ReduceScatterOptions even(b.context);
  even.setInput<float>(b.in);
  even.setOutput<float>(b.part);
  setSum(even);
  expectRegisteredOnce("reduce_scatter", b.context,
                       [&] { reduce_scatter(even); });
  EXPECT_EQ(static_cast<float>(b.size), b.partData.back());
}

void checkReduceScatterv(const Buffers& b) {
  ReduceScattervOptions uneven(b.context);
  uneven.setInput<float>(b.in, b.counts);
  uneven.setOutput<float>(b.part);
  setSum(uneven);
  expectRegisteredOnce("reduce_scatterv", b.context,
                       [&] { reduce_scatterv(uneven); });
}

void checkGather(const Buffers& b) {
  GatherOptions even(b.context);
  even.setInput<float>(b.part);
  even.setRoot(kRoot);
  if (b.isRoot()) {
    even.setOutput<float>(b.out);
  }
  expectRegisteredOnce("gather", b.context, [&] { gather(even); });
}

void checkGatherv(const Buffers& b) {
  GathervOptions uneven(b.context);
  uneven.setInput<float>(b.part);
  uneven.setRoot(kRoot);
  if (b.isRoot()) {
    uneven.setOutput<float>(b.out, b.counts);
  }
  expectRegisteredOnce("gatherv", b.context, [&] { gatherv(uneven); });
}

void checkAllgather(const Buffers& b) {
  AllgatherOptions even(b.context);
  even.setOutput<float>(b.out);
  expectRegisteredOnce("allgather", b.context, [&] { allgather(even); });
}

void checkAllgatherv(const Buffers& b) {
  AllgathervOptions all(b.context);
  all.setInput<float>(b.part);
  all.setOutput<float>(b.out, b.counts);
  expectRegisteredOnce("allgatherv", b.context, [&] { allgatherv(all); });
}

void checkScatter(const Buffers& b) {
  ScatterOptions opts(b.context);
  opts.setRoot(kRoot);
  opts.setOutput<float>(b.part);
  if (b.isRoot()) {
    std::vector<std::unique_ptr<transport::UnboundBuffer>> parts;
    for (size_t i = 0; i < b.size; i++) {
      parts.push_back(b.context->createUnboundBuffer(
          const_cast<float*>(&b.inData[i * kPart]), kPart * sizeof(float)));
    }
    opts.setInputs<float>(std::move(parts));
  }
  expectRegisteredOnce("scatter", b.context, [&] { scatter(opts); });
}

void checkAlltoall(const Buffers& b) {
  AlltoallOptions even(b.context);
  even.setInput<float>(b.in);
  even.setOutput<float>(b.out);
  expectRegisteredOnce("alltoall", b.context, [&] { alltoall(even); });
}

void checkAlltoallv(const Buffers& b) {
  AlltoallvOptions uneven(b.context);
  uneven.setInput<float>(b.in, b.signedCounts);
  uneven.setOutput<float>(b.out, b.signedCounts);
  expectRegisteredOnce("alltoallv", b.context, [&] { alltoallv(uneven); });
}

TEST(KeptBuffers, AreRegisteredOnceByEveryCollective) {
  for (const int size : {2, 3}) {
    spawnContexts(
        Mode::kThreads, fakeVerbsDevices(plainDevices()), size,
        [](const ContextPtr& context) {
          for (const auto check :
               {&checkReduce, &checkReduceScatter, &checkReduceScatterv,
                &checkGather, &checkGatherv, &checkAllgather, &checkAllgatherv,
                &checkScatter, &checkAlltoall, &checkAlltoallv}) {
            check(Buffers(context));  // which nothing has used yet
          }
        });
  }
  EXPECT_EQ(mistakesOfFakeVerbs(), "");
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
