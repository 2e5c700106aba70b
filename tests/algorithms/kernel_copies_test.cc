// Whether the kernel copies an alltoall from process to process, and what
// becomes of it where it is not permitted any more.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "gloo/alltoall.h"
#include "gloo/common/error.h"
#include "gloo/internal/direct.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/transport/shm/device.h"
#include "tests/support/process_group.h"
#include "tests/support/refuse_calls.h"
#include "tests/support/spawn.h"
#include "tests/support/transports.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using ContextPtr = std::shared_ptr<Context>;

constexpr size_t kCount = 300000;  // of each part: over a MiB together

ContextPtr connect(const Child& child, int size, const std::string& directory,
                   const transport::shm::attr& attr = {}) {
  auto context = std::make_shared<rendezvous::Context>(child.rank, size);
  context->setTimeout(contextTimeout());
  rendezvous::FileStore store(directory);
  auto device = transport::shm::CreateDevice(attr);
  context->connectFullMesh(store, device);
  return context;
}

// Each part is the number of its sender, of its receiver and of the call.
void exchange(const ContextPtr& context, int call) {
  const auto size = static_cast<size_t>(context->size);
  const auto word = [&](int from, int to) {
    return (call * 100 + from) * 100 + to;
  };
  std::vector<int> input;
  for (int to = 0; to < context->size; to++) {
    input.insert(input.end(), kCount, word(context->rank, to));
  }
  std::vector<int> output(size * kCount);
  AlltoallOptions opts(context);
  opts.setInput(input.data(), input.size());
  opts.setOutput(output.data(), output.size());
  alltoall(opts);
  for (int from = 0; from < context->size; from++) {
    const std::vector<int> expected(kCount, word(from, context->rank));
    const auto begin = output.begin() + static_cast<ptrdiff_t>(kCount) * from;
    ASSERT_EQ(expected, std::vector<int>(begin, begin + kCount)) << call;
  }
}

// As it is tried first.
void exchangeThroughSlots(const ContextPtr& context) {
  for (int call = 0; call < internal::Lane::ReadTrial::kTries; call++) {
    exchange(context, call);
  }
}

void endWhoReads() {
  refuseCall(SYS_process_vm_readv, SECCOMP_RET_KILL_PROCESS, {},
             Refused::kAllThreads);
}

const char* mayRead() {
  return ::geteuid() == 0 ? "" : "only root may read in any case";
}

TEST(KernelCopiesTest, ALongAlltoallIsReadFromTheOthers) {
  SKIP_IF_MISSING("root", mayRead());
  const ScratchDirectory directory;
  ProcessGroup ranks(3, [&](Child& child) {
    const auto context = connect(child, 3, directory.path());
    exchangeThroughSlots(context);
    exchange(context, 1);
    if (child.rank == 1) {
      endWhoReads();
    }
    EXPECT_THROW(exchange(context, 2), IoException);
  });
  EXPECT_TRUE(ranks.join(1, std::chrono::seconds(20)).killedBy(SIGSYS));
  ranks.joinAll();
}

// Both are tried, and one of them taken.
TEST(KernelCopiesTest, ItGivesTheSameAsSlots) {
  const ScratchDirectory directory;
  ProcessGroup ranks(3, [&](Child& child) {
    const auto context = connect(child, 3, directory.path());
    for (int call = 1; call <= 20; call++) {
      exchange(context, call);
    }
  });
  ranks.joinAll();
}

TEST(KernelCopiesTest, NothingIsReadWhereARankHasItSwitchedOff) {
  for (const bool byVariable : {true, false}) {
    const ScratchDirectory directory;
    ProcessGroup ranks(3, [&](Child& child) {
      transport::shm::attr attr;
      if (child.rank == 0 && byVariable) {
        ::setenv("GLOO_SHM_SINGLE_COPY", "0", 1);
      }
      attr.singleCopy = child.rank != 0 || byVariable;
      const auto context = connect(child, 3, directory.path(), attr);
      endWhoReads();
      exchangeThroughSlots(context);
      exchange(context, 1);
    });
    ranks.joinAll();
  }
}

// The one that may not says so, and all begin again. After that nobody reads:
// who did would end.
TEST(KernelCopiesTest, WhereItIsForbiddenMeanwhileAllGoOnWithoutIt) {
  SKIP_IF_MISSING("root", mayRead());
  const ScratchDirectory directory;
  ProcessGroup ranks(3, [&](Child& child) {
    const auto context = connect(child, 3, directory.path());
    exchangeThroughSlots(context);
    exchange(context, 1);
    if (child.rank == 2) {
      refuseCall(SYS_process_vm_readv, SECCOMP_RET_ERRNO | EPERM);
    }
    exchange(context, 2);
    endWhoReads();
    exchange(context, 3);
  });
  ranks.joinAll();
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
