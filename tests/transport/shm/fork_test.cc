// A rank that shares memory forks: what it has shared is nothing of its
// child's.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/transport/shm/allocate.h"
#include "gloo/transport/shm/device.h"
#include "gloo/transport/unbound_buffer.h"
#include "rendezvous/claims.h"
#include "tests/algorithms/lanes.h"
#include "tests/support/collectives.h"
#include "tests/support/cores.h"
#include "tests/support/forked_child.h"
#include "tests/support/process_group.h"
#include "tests/support/sanitized.h"
#include "tests/support/spawn.h"
#include "tests/transport/shm/harness.h"
#include "transport/shm/local.h"
#include "transport/shm/sealed_memory.h"
#include "transport/shm/segment.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using ContextPtr = std::shared_ptr<Context>;

constexpr size_t kCount = 750000;

void reduceOnes(const ContextPtr& context, int* values) {
  std::fill(values, values + kCount, 1);
  AllreduceOptions opts(context);
  opts.setOutput(values, kCount);
  opts.setReduceFunction(testing_support::adder<int>());
  allreduce(opts);
  EXPECT_EQ(std::count(values, values + kCount, context->size),
            static_cast<ptrdiff_t>(kCount));
}

void exchangeLong(const ContextPtr& context, uint64_t slot) {
  const auto of = [](int rank) {
    return std::string(kCount, static_cast<char>('a' + rank));
  };
  const int peer = 1 - context->rank;
  std::string out = of(context->rank);
  std::string in(kCount, '-');
  auto send = context->createUnboundBuffer(out.data(), kCount);
  auto recv = context->createUnboundBuffer(in.data(), kCount);
  send->send(peer, slot);
  recv->recv(peer, slot);
  send->waitSend();
  recv->waitRecv();
  EXPECT_EQ(in, of(peer));
}

// Everything that the parent has, once it has forked.
struct Belongings {
  std::shared_ptr<transport::Device> device;
  ContextPtr context;
  transport::shm::Memory memory;

  int* values() const { return static_cast<int*>(memory.data()); }
};

Belongings connected(int rank, std::shared_ptr<rendezvous::Store> store) {
  Belongings mine;
  mine.device = transport::shm::CreateDevice();
  auto context = std::make_shared<rendezvous::Context>(rank, 2);
  context->setTimeout(contextTimeout());
  context->connectFullMesh(std::move(store), mine.device);
  mine.context = std::move(context);
  return mine;
}

void tryAndDestroy(Belongings& belongings) {
  EXPECT_TRUE(isRefused([&] {
    std::vector<int> values(10);
    AllreduceOptions opts(belongings.context);
    opts.setOutput(values.data(), values.size());
    opts.setReduceFunction(testing_support::adder<int>());
    allreduce(opts);
  }));
  belongings = {};
}

void forkAChild(Belongings& belongings) {
  EXPECT_TRUE(holdsInChild([&] {
    tryAndDestroy(belongings);
    return !testing::Test::HasFailure();
  }));
}

// On one core, so that long messages are read by the kernel.
TEST(ShmForkTest, AForkedChildLetsGoOfNothing) {
  const ScratchDirectory directory;
  ProcessGroup ranks(2, [&](Child& child) {
    stayOn(0, 1);
    Belongings mine = connected(
        child.rank, std::make_shared<rendezvous::FileStore>(directory.path()));
    mine.memory = transport::shm::allocate(kCount * sizeof(int));
    (void)laneOf(mine.context, kAllreduceSlotPrefix, 0);  // there are lanes
    reduceOnes(mine.context, mine.values());
    exchangeLong(mine.context, 1);
    forkAChild(mine);
    child.say("forked");
    child.hear();
    exchangeLong(mine.context, 2);
    reduceOnes(mine.context, mine.values());
    std::vector<int> ordinary(kCount);
    reduceOnes(mine.context, ordinary.data());
    exchangeLong(mine.context, 3);
    barrier(BarrierOptions(mine.context));
  });
  ranks.expectAll("forked");
  ranks.tellAll("go on");
  ranks.joinAll();
}

// It polls what its parent sleeps on.
TEST(ShmForkTest, AChildTakesNoFlagOfItsParentBack) {
  HalfLink half;
  half.poller.arm();
  EXPECT_TRUE(holdsInChild([&] {
    half.poll();
    half.poll();
    return true;
  }));
  transport::shm::FrameWriter peer(
      half.segment->outgoing(transport::shm::End::kTaker));
  bool ring = false;
  ASSERT_TRUE(peer.bound(3, 16, "word", 4, &ring));
  EXPECT_TRUE(ring);
}

#ifndef GLOO_TEST_THREAD_SANITIZED  // which lets no such child have threads

bool reducesAmongThreads() {
  spawnContexts(
      Mode::kThreads, [] { return transport::shm::CreateDevice(); }, 2,
      [](const ContextPtr& context) {
        const auto memory = transport::shm::allocate(kCount * sizeof(int));
        reduceOnes(context, static_cast<int*>(memory.data()));
      });
  return !testing::Test::HasFailure();
}

TEST(ShmForkTest, AChildMakesContextsWhileAThreadOfItsParentFindsSegments) {
  using Segments = transport::shm::Local<transport::shm::Segment>;
  EXPECT_TRUE(holdsInChildrenWhile([] { Segments::instance().find({}); },
                                   reducesAmongThreads));
}

TEST(ShmForkTest, AChildMakesContextsWhileAThreadOfItsParentFindsMemory) {
  using Memory = transport::shm::Local<transport::shm::SealedMemory>;
  EXPECT_TRUE(holdsInChildrenWhile([] { Memory::instance().find({}); },
                                   reducesAmongThreads));
}

#endif

// The parent's threads allocate, and the address sanitizer's child waits for a
// lock of its allocator that one of them held.
#ifndef GLOO_TEST_SANITIZED

TEST(ShmForkTest, AChildMakesContextsWhileAThreadOfItsParentConnects) {
  EXPECT_TRUE(holdsInChildrenWhile([] { const rendezvous::Claim claim(1); },
                                   reducesAmongThreads));
}

// Until the last value of both ranks is 1.
void reduceAllTheTime(const ContextPtr& context,
                      const std::atomic<int>& value) {
  int sum = 0;
  for (size_t count = 1; sum < 2; count = count % 5000 + 1) {
    std::vector<int> values(count, value);
    AllreduceOptions opts(context);
    opts.setOutput(values.data(), count);
    opts.setReduceFunction(testing_support::adder<int>());
    allreduce(opts);
    sum = values[0];
  }
}

// Two ranks as threads, each with one more that runs collectives.
TEST(ShmForkTest, AChildDestroysWhatThreadsOfItsParentUse) {
  spawnSeats(Mode::kThreads, 2, [](Seat& seat) {
    Belongings mine = connected(seat.rank, seat.store);
    std::atomic<int> value{0};
    // What belongs to a thread is not destroyed in the child.
    const ContextPtr borrowed(ContextPtr(), mine.context.get());
    std::thread other([&] { reduceAllTheTime(borrowed, value); });
    for (int i = 0; i < 20; i++) {
      forkAChild(mine);
    }
    value = 1;
    other.join();
  });
}

#endif

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
