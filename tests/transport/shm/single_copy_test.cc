// Whether the kernel copies a message from process to process: who has it end
// every process that asks for that sees.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "gloo/common/error.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/transport/shm/allocate.h"
#include "gloo/transport/shm/device.h"
#include "gloo/transport/unbound_buffer.h"
#include "tests/support/cores.h"
#include "tests/support/process_group.h"
#include "tests/support/refuse_calls.h"
#include "tests/support/spawn.h"
#include "tests/support/transports.h"
#include "tests/transport/shm/harness.h"
#include "transport/base/shared_allocations.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

constexpr size_t kBytes = 3000000;
constexpr int kReceiver = 1;

void endWhoReads() {
  refuseCall(SYS_process_vm_readv, SECCOMP_RET_KILL_PROCESS, {},
             Refused::kAllThreads);
}

// How the receiver of a long message ends, of two ranks on one core.
Outcome receiverOf(const char* environment, bool attribute,
                   bool whenConnected) {
  const ScratchDirectory directory;
  ProcessGroup ranks(2, [&](Child& child) {
    stayOn(0, 1);
    if (environment != nullptr) {
      ::setenv("GLOO_SHM_SINGLE_COPY", environment, 1);
    }
    if (child.rank == kReceiver && !whenConnected) {
      endWhoReads();  // also to find out whether it may
    }
    transport::shm::attr attr;
    attr.singleCopy = attribute;
    auto device = transport::shm::CreateDevice(attr);
    auto context = device->createContext(child.rank, 2);
    context->setTimeout(contextTimeout());
    context->createAndConnectAllPairs(
        std::make_shared<rendezvous::FileStore>(directory.path()));
    std::string bytes(kBytes, child.rank == kReceiver ? '-' : 'x');
    auto buffer = context->createUnboundBuffer(bytes.data(), kBytes);
    if (child.rank != kReceiver) {
      child.hear();
      try {
        buffer->send(kReceiver, 5);
        buffer->waitSend();
      } catch (const IoException&) {  // the receiver has ended
      }
      child.hear();  // else its own end might come before the message
      return;
    }
    if (whenConnected) {
      endWhoReads();
    }
    child.say("ready");
    buffer->recv(1 - kReceiver, 5);
    buffer->waitRecv();
    EXPECT_EQ(bytes, std::string(kBytes, 'x'));
  });
  ranks.expect(kReceiver, "ready");
  ranks.tell(1 - kReceiver, "go");
  const Outcome outcome =
      ranks.join(kReceiver, std::chrono::seconds(20) * patience());
  ranks.tell(1 - kReceiver, "go");
  ranks.joinAll();
  return outcome;
}

TEST(SingleCopyTest, LongMessagesAreReadWhereThereAreMoreRanksThanCores) {
  SKIP_IF_MISSING("root",
                  ::geteuid() == 0 ? "" : "only root may read in any case");
  const Outcome outcome = receiverOf(nullptr, true, true);
  EXPECT_TRUE(outcome.killedBy(SIGSYS)) << outcome.str();
}

TEST(SingleCopyTest, NothingIsReadWhereThatIsSwitchedOff) {
  const Outcome byAttribute = receiverOf(nullptr, false, false);
  EXPECT_TRUE(byAttribute.exitedWith(0)) << byAttribute.str();
  const Outcome byEnvironment = receiverOf("0", true, false);
  EXPECT_TRUE(byEnvironment.exitedWith(0)) << byEnvironment.str();
}

// What a loan holds may not be the peer's memory any more.
TEST(SingleCopyTest, AWithdrawnLoanDoesNotStandForWhatMayNotBeRead) {
  ProcessGroup ranks(1, [](Child&) {
    using namespace transport::shm;  // NOLINT
    const Secret secret = makeSecret();
    HalfLink half({::getpid(), reinterpret_cast<uint64_t>(&secret), secret});
    const Memory memory = allocate(8192);
    const auto at = reinterpret_cast<uint64_t>(memory.data());
    Loans owner;
    owner.lend(half.otherSocket.get(), static_cast<const char*>(memory.data()),
               8192);
    half.link->onSocket();
    ASSERT_TRUE(half.link->reads({at, 0}, 8192, false));
    auto& all = transport::base::SharedAllocations::instance();
    all.withdraw(all.find(at).id, 0, 8192);
    refuseCall(SYS_process_vm_readv, SECCOMP_RET_ERRNO | EPERM);
    std::vector<char> to(8192);
    int tokens[2];
    for (int& token : tokens) {
      EXPECT_FALSE(
          half.link->read(to.data(), to.size(), nullptr, {at, 0}, &token));
    }
    half.poll();
    EXPECT_EQ(half.notes.refused, (std::vector<void*>{&tokens[0], &tokens[1]}));
    EXPECT_EQ(half.notes.lost, "");
    EXPECT_FALSE(half.link->reads({at, 0}, 8192, true));
  });
  ranks.joinAll();
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
