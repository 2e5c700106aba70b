// Vectors that a collective copies, as to register them would take longer.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "gloo/allgather.h"
#include "gloo/allreduce.h"
#include "gloo/alltoall.h"
#include "gloo/broadcast.h"
#include "gloo/gather.h"
#include "gloo/gatherv.h"
#include "gloo/internal/statistics.h"
#include "gloo/math.h"
#include "gloo/reduce.h"
#include "gloo/reduce_scatter.h"
#include "gloo/scatter.h"
#include "tests/support/process_group.h"
#include "tests/transport/ibverbs/harm.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using Vector = std::vector<float>;

constexpr size_t kBlock = 8192;  // elements: longer than an eager message
void (*const kSum)(void*, const void*, const void*, size_t) = &sum<float>;

class VerbsShortVectorsTest : public VerbsFailureTest {};

// Each rank's contribution to block b: rank + b.
Vector blocksOf(int rank, int blocks) {
  Vector data;
  for (int b = 0; b < blocks; b++) {
    data.insert(data.end(), kBlock, static_cast<float>(rank + b));
  }
  return data;
}

void expectBlock(const Vector& data, int block, int value) {
  const auto begin = data.begin() + static_cast<ptrdiff_t>(block * kBlock);
  EXPECT_EQ(std::count(begin, begin + kBlock, static_cast<float>(value)),
            ptrdiff_t{kBlock})
      << "block " << block << " should be " << value << ", begins with "
      << *begin;
}

// In the place of what they send.
void runInPlace(const std::shared_ptr<Context>& context) {
  const int size = context->size;
  const int rank = context->rank;
  const int ranks = size * (size - 1) / 2;  // their sum
  {
    Vector data = blocksOf(rank, size);
    AlltoallOptions options(context);
    options.setInput(data.data(), data.size());
    options.setOutput(data.data(), data.size());
    alltoall(options);
    for (int i = 0; i < size; i++) {
      expectBlock(data, i, i + rank);
    }
  }
  {
    Vector data = blocksOf(rank, size);
    ReduceScatterOptions options(context);
    options.setInput(data.data(), data.size());
    options.setOutput(data.data(), kBlock);
    options.setReduceFunction(kSum);
    reduce_scatter(options);
    expectBlock(data, 0, ranks + size * rank);
  }
}

// The first rank has nothing, and the last twice as much.
void runUneven(const std::shared_ptr<Context>& context) {
  const int size = context->size;
  const int rank = context->rank;
  std::vector<size_t> counts(size, kBlock);
  counts.front() = 0;
  counts.back() = 2 * kBlock;
  Vector in(counts[rank], static_cast<float>(rank));
  Vector out(size * kBlock, -1);
  GathervOptions options(context);
  options.setInput(in.data(), in.size());
  options.setOutput(out.data(), counts);
  options.setRoot(1);
  gatherv(options);
  for (int i = 0; rank == 1 && i < size; i++) {
    expectBlock(out, i, std::min(i + 1, size - 1));
  }
}

// Every collective that has a vector.
void runAll(const std::shared_ptr<Context>& context) {
  const int size = context->size;
  const int rank = context->rank;
  const int ranks = size * (size - 1) / 2;  // their sum
  {
    Vector a = blocksOf(rank, 1);
    Vector b = blocksOf(rank + 1, 1);
    AllreduceOptions options(context);
    options.setInputs(std::vector<float*>{a.data(), b.data()}, kBlock);
    options.setOutputs(std::vector<float*>{a.data(), b.data()}, kBlock);
    options.setReduceFunction(kSum);
    allreduce(options);
    expectBlock(a, 0, 2 * ranks + size);
    expectBlock(b, 0, 2 * ranks + size);
  }
  {
    Vector in = blocksOf(rank, 2);
    Vector out(2 * kBlock, -1);
    AllreduceOptions options(context);
    options.setInput(in.data(), 2 * kBlock);
    options.setOutput(out.data(), 2 * kBlock);
    options.setReduceFunction(kSum);
    allreduce(options);
    expectBlock(out, 1, ranks + size);
    expectBlock(in, 1, rank + 1);
  }
  {
    Vector data = blocksOf(rank, 1);
    BroadcastOptions options(context);
    options.setOutput(data.data(), kBlock);
    options.setRoot(size - 1);
    broadcast(options);
    expectBlock(data, 0, size - 1);
  }
  {
    Vector data(size * kBlock, -1);
    std::fill_n(data.begin() + static_cast<ptrdiff_t>(rank * kBlock), kBlock,
                static_cast<float>(rank));
    AllgatherOptions options(context);
    options.setOutput(data.data(), data.size());
    allgather(options);
    for (int i = 0; i < size; i++) {
      expectBlock(data, i, i);
    }
  }
  {
    Vector in = blocksOf(rank, size);
    Vector out(size * kBlock, -1);
    AlltoallOptions options(context);
    options.setInput(in.data(), in.size());
    options.setOutput(out.data(), out.size());
    alltoall(options);
    for (int i = 0; i < size; i++) {
      expectBlock(out, i, i + rank);
    }
  }
  {
    Vector in = blocksOf(rank, size);
    Vector out(kBlock, -1);
    ReduceScatterOptions options(context);
    options.setInput(in.data(), in.size());
    options.setOutput(out.data(), out.size());
    options.setReduceFunction(kSum);
    reduce_scatter(options);
    expectBlock(out, 0, ranks + size * rank);
  }
  {
    Vector in = blocksOf(rank, 1);
    Vector out(kBlock, -1);
    ReduceOptions options(context);
    options.setInput(in.data(), kBlock);
    options.setOutput(out.data(), kBlock);
    options.setRoot(0);
    options.setReduceFunction(kSum);
    reduce(options);
    expectBlock(in, 0, rank);
    if (rank == 0) {
      expectBlock(out, 0, ranks);
    }
  }
  {
    Vector in = blocksOf(rank, size);
    Vector out(kBlock, -1);
    ScatterOptions options(context);
    std::vector<float*> blocks;
    for (int i = 0; rank == 0 && i < size; i++) {
      blocks.push_back(&in[i * kBlock]);
    }
    options.setInputs(blocks, kBlock);
    options.setOutput(out.data(), kBlock);
    options.setRoot(0);
    scatter(options);
    expectBlock(out, 0, rank);
  }
  {
    Vector in = blocksOf(rank, 1);
    Vector out(size * kBlock, -1);
    GatherOptions options(context);
    options.setInput(in.data(), kBlock);
    if (rank == 0) {
      options.setOutput(out.data(), out.size());
    }
    options.setRoot(0);
    gather(options);
    for (int i = 0; rank == 0 && i < size; i++) {
      expectBlock(out, i, i);
    }
  }
  runInPlace(context);
  runUneven(context);
}

TEST_F(VerbsShortVectorsTest, AreRegisteredByNoCall) {
  for (const int size : {2, 3, 4}) {
    spawnContexts(Mode::kThreads, fakeVerbsDevices(plainDevices()), size,
                  [](const std::shared_ptr<Context>& context) {
                    runAll(context);  // makes scratch memory
                    runAll(context);
                    const auto& device = *context->getDevice();
                    const auto before = internal::statisticsOf(device);
                    runAll(context);
                    const auto after = internal::statisticsOf(device);
                    EXPECT_GT(after.directSent, before.directSent);
                    EXPECT_EQ(after.registrations, before.registrations);
                  });
  }
}

TEST_F(VerbsShortVectorsTest, WithoutThatAttributeTheyAreRegistered) {
  FakeDevices devices = plainDevices();
  devices.attr.callBytes = 0;
  spawnContexts(Mode::kThreads, fakeVerbsDevices(devices), 3,
                [](const std::shared_ptr<Context>& context) {
                  runAll(context);
                  const auto& device = *context->getDevice();
                  const auto before = internal::statisticsOf(device);
                  runAll(context);
                  const auto after = internal::statisticsOf(device);
                  EXPECT_GE(after.registrations, before.registrations + 7);
                });
}

// To be written in place by a peer, from the first call on.
TEST_F(VerbsShortVectorsTest, InABufferOfTheCallersTheyAreNotCopied) {
  spawnContexts(
      Mode::kThreads, fakeVerbsDevices(plainDevices()), 2,
      [](const std::shared_ptr<Context>& context) {
        Vector data = blocksOf(context->rank, 1);
        const std::shared_ptr<transport::UnboundBuffer> buffer =
            context->createUnboundBuffer(data.data(), kBlock * sizeof(float));
        BroadcastOptions options(context);
        options.setOutput<float>(buffer);
        options.setRoot(1);
        broadcast(options);
        expectBlock(data, 0, 1);
        EXPECT_EQ(fakeVerbs().canBeWritten(data.data(), 1), context->rank == 0);
      });
}

TEST_F(VerbsShortVectorsTest, ACallThatFailsLeavesThemAsTheyWere) {
  spawnContexts(Mode::kThreads, fakeVerbsDevices(plainDevices()), 2,
                [&](const std::shared_ptr<Context>& context) {
                  if (context->rank == 0) {
                    Vector data(kBlock, 7);
                    BroadcastOptions options(context);
                    options.setOutput(data.data(), data.size());
                    options.setRoot(1);
                    options.setTimeout(std::chrono::milliseconds(100));
                    EXPECT_THROW(broadcast(options), TimeoutException);
                    expectBlock(data, 0, 7);
                  }
                  meetOutside();
                });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
