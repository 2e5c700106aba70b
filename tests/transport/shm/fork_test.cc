// A rank that shares memory forks: what it has shared is nothing of its
// child's.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/common/error.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/transport/shm/allocate.h"
#include "gloo/transport/shm/device.h"
#include "gloo/transport/unbound_buffer.h"
#include "tests/algorithms/lanes.h"
#include "tests/support/collectives.h"
#include "tests/support/cores.h"
#include "tests/support/process_group.h"
#include "tests/support/spawn.h"

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

void tryAndDestroy(Belongings& belongings) {
  try {
    std::vector<int> values(10);
    AllreduceOptions opts(belongings.context);
    opts.setOutput(values.data(), values.size());
    opts.setReduceFunction(testing_support::adder<int>());
    allreduce(opts);
    ADD_FAILURE() << "an allreduce of a forked child";
  } catch (const InvalidOperationException& e) {
    EXPECT_NE(std::string(e.what()).find("before fork()"), std::string::npos)
        << e.what();
  }
  belongings = {};
}

void forkAChild(Belongings& belongings) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(20);  // ends a child that waits for what is not there
    tryAndDestroy(belongings);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

// On one core, so that long messages are read by the kernel.
TEST(ShmForkTest, AForkedChildLetsGoOfNothing) {
  const ScratchDirectory directory;
  ProcessGroup ranks(2, [&](Child& child) {
    stayOn(0, 1);
    Belongings mine;
    mine.device = transport::shm::CreateDevice();
    auto context = std::make_shared<rendezvous::Context>(child.rank, 2);
    context->setTimeout(contextTimeout());
    context->connectFullMesh(
        std::make_shared<rendezvous::FileStore>(directory.path()), mine.device);
    mine.context = std::move(context);
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

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
