// What a small collective costs beside its wait for others, where all ranks
// share memory: no allocation, no registration, no message, and no system call,
// as the kernel sees it. Options objects are reused.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include "gloo/allgather.h"
#include "gloo/allreduce.h"
#include "gloo/alltoall.h"
#include "gloo/barrier.h"
#include "gloo/broadcast.h"
#include "gloo/internal/statistics.h"
#include "gloo/math.h"
#include "gloo/reduce.h"
#include "gloo/reduce_scatter.h"
#include "gloo/transport/shm/allocate.h"
#include "gloo/transport/shm/device.h"
#include "tests/support/sanitized.h"
#include "tests/support/spawn.h"
#include "tests/support/usage.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using ContextPtr = std::shared_ptr<Context>;

// Every collective that is meant, on vectors of one kind of memory.
class Collectives {
 public:
  Collectives(const ContextPtr& context, float* data, size_t count)
      : reduce_(context),
        reduceTo_(context),
        scatter_(context),
        all_(context),
        send_(context),
        gather_(context),
        barrier_(context) {
    const size_t part = count / static_cast<size_t>(context->size);
    const size_t parts = part * static_cast<size_t>(context->size);
    reduce_.setOutput(data, count);
    void (*add)(void*, const void*, const void*, size_t) = &sum<float>;
    reduce_.setReduceFunction(add);
    reduceTo_.setInput(data, count);
    reduceTo_.setOutput(data + count, count);
    reduceTo_.setReduceFunction(add);
    reduceTo_.setRoot(1);
    scatter_.setInput(data, parts);
    scatter_.setOutput(data + count, part);
    scatter_.setReduceFunction(add);
    all_.setInput(data, parts);
    all_.setOutput(data + count, parts);
    send_.setOutput(data, count);
    send_.setRoot(1);
    gather_.setInput(data + count, part);
    gather_.setOutput(data, part * static_cast<size_t>(context->size));
  }
  void run(int times) {
    for (int i = 0; i < times; i++) {
      allreduce(reduce_);
      reduce(reduceTo_);
      reduce_scatter(scatter_);
      alltoall(all_);
      broadcast(send_);
      allgather(gather_);
      barrier(barrier_);
    }
  }

 private:
  AllreduceOptions reduce_;
  ReduceOptions reduceTo_;
  ReduceScatterOptions scatter_;
  AlltoallOptions all_;
  BroadcastOptions send_;
  AllgatherOptions gather_;
  BarrierOptions barrier_;
};

struct Case {
  size_t count;
  bool shared = false;
  int ranks = 2;
};

class QuietCollectivesTest : public ::testing::TestWithParam<Case> {
 protected:
  template <typename Body>
  static void onAll(const Body& body) {
    const Case c = GetParam();
    spawnContexts(
        Mode::kThreads, [] { return transport::shm::CreateDevice(); }, c.ranks,
        [&](const ContextPtr& context) {
          const size_t bytes = 2 * c.count * sizeof(float);
          transport::shm::Memory memory;
          std::vector<float> own(2 * c.count);
          if (c.shared) {
            memory = transport::shm::allocate(bytes);
          }
          Collectives collectives(
              context,
              c.shared ? static_cast<float*>(memory.data()) : own.data(),
              c.count);
          collectives.run(20);
          body(*context, collectives);
          collectives.run(1);  // others may still be counting
        });
  }
};

TEST_P(QuietCollectivesTest, NothingIsAllocatedRegisteredOrSent) {
  onAll([](Context& context, Collectives& collectives) {
    const auto& device = *context.getDevice();
    const auto before = internal::statisticsOf(device);
    const uint64_t allocated = allocations();
    collectives.run(200);
    EXPECT_EQ(allocations(), allocated);
    const auto after = internal::statisticsOf(device);
    EXPECT_EQ(after.allocations, before.allocations);
    EXPECT_EQ(after.registrations, before.registrations);
    // Of connecting: a credit may still be on its way.
    EXPECT_LE(after.framesSent, before.framesSent + 2 * (context.size - 1));
  });
}

// Of 100 calls, by all threads of this process.
template <typename Call>
uint64_t allocationsOf(const Call& call) {
  for (int i = 0; i < 20; i++) {
    call();
  }
  const uint64_t before = allocations();
  for (int i = 0; i < 100; i++) {
    call();
  }
  return allocations() - before;
}

// What options cost that are built for the call; those of reused ones beside.
// In processes, as the number is this rank's alone.
TEST(BuiltOptionsTest, WhatBuildingAllocatesIsTheListsOfSeveralVectors) {
  const auto device = [] { return transport::shm::CreateDevice(); };
  spawnContexts(Mode::kProcesses, device, 2, [](const ContextPtr& context) {
    std::array<float, 2> first{};
    std::array<float, 2> second{};
    const std::array vectors{first.data(), second.data()};
    const auto build = [&](size_t count) {
      AllreduceOptions options(context);
      options.setOutputs(vectors.data(), count, first.size());
      void (*add)(void*, const void*, const void*, size_t) = &sum<float>;
      options.setReduceFunction(add);
      return options;
    };
    const AllreduceOptions ofOne = build(1);
    const AllreduceOptions ofTwo = build(2);
    EXPECT_EQ(0u, allocationsOf([&] { allreduce(ofOne); }));
    EXPECT_EQ(0u, allocationsOf([&] { allreduce(ofTwo); }));
    EXPECT_EQ(0u, allocationsOf([&] { allreduce(build(1)); }));
    EXPECT_EQ(200u, allocationsOf([&] { allreduce(build(2)); }));
    // The second call keeps with its options what was found out.
    EXPECT_EQ(100u, allocationsOf([&] {
                const AllreduceOptions twice = build(1);
                allreduce(twice);
                allreduce(twice);
              }));
    // Who leaves wakes the other one's threads: not before that has counted.
    allreduce(ofOne);
  });
}

// The sanitizers make system calls of their own.
#ifndef GLOO_TEST_SANITIZED

thread_local std::atomic<int> trapped{0};
thread_local std::atomic<int> lastCall{-1};

void onTrap(int, siginfo_t* info, void*) {
  trapped++;
  lastCall = info->si_syscall;
}

// The kernel refuses this thread, from now on, every system call but those of
// waiting (a yield and a look at what it was good for,
// transport/base/yielder.h; a sleep until a peer has come, and the barrier
// before it) and of ending, and says so.
void trapSystemCalls() {
  struct sigaction action {};
  action.sa_sigaction = &onTrap;
  action.sa_flags = SA_SIGINFO;
  ASSERT_EQ(::sigaction(SIGSYS, &action, nullptr), 0);
  constexpr std::array kAllowed = {
      SYS_sched_yield, SYS_getrusage,         SYS_futex,
      SYS_membarrier,  SYS_sched_getaffinity, SYS_sched_setaffinity,
      SYS_exit,        SYS_rt_sigreturn};
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const long call : kAllowed) {
    filter.push_back(
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
  const sock_fprog program{static_cast<uint16_t>(filter.size()), filter.data()};
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

TEST_P(QuietCollectivesTest, TheKernelSeesNoSystemCall) {
  onAll([](Context&, Collectives& collectives) {
    // A thread of its own: what it is refused, it is refused for good.
    int calls = -1;
    int last = -1;
    bool isCounted = false;
    std::thread([&] {
      trapSystemCalls();
      collectives.run(200);
      calls = trapped;
      last = lastCall;
      ::syscall(SYS_getppid);  // the counterproof
      isCounted = trapped == calls + 1 && lastCall == SYS_getppid;
    }).join();
    EXPECT_EQ(calls, 0) << "the last one: number " << last;
    EXPECT_TRUE(isCounted);
  });
}

#endif

INSTANTIATE_TEST_SUITE_P(
    , QuietCollectivesTest,
    ::testing::Values(Case{2}, Case{1000}, Case{100000}, Case{100000, true},
                      Case{4, false, 4}, Case{5000, false, 4},
                      Case{100000, true, 4}),
    [](const auto& info) {
      const Case& c = info.param;
      return MakeString("of_", c.count, c.shared ? "_shared" : "",
                        c.ranks > 2 ? "_more_ranks" : "");
    });

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
