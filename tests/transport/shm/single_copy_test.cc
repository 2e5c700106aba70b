// Whether the kernel copies a message from process to process: who has it end
// every process that asks for that sees.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gloo/common/error.h"
#include "gloo/common/string.h"
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
  const Outcome outcome = ranks.join(kReceiver, std::chrono::seconds(20));
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

// ---- Memory that its process reads, and the kernel copies for nobody else.

// The kernel's clocks, which it maps into every process; 0: it does not.
uint64_t pageOfClocks() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with("[vvar]")) {
      return std::stoull(line, nullptr, 16);
    }
  }
  return 0;
}

TEST(SingleCopyTest, WhatTheKernelDoesNotCopyThePeerIsToSend) {
  using namespace transport::shm;  // NOLINT
  const uint64_t clocks = pageOfClocks();
  SKIP_IF_MISSING("vvar", clocks != 0 ? "" : "no page of clocks is mapped");
  const Secret secret = makeSecret();
  HalfLink half({::getpid(), reinterpret_cast<uint64_t>(&secret), secret});
  ASSERT_TRUE(half.link->reads({clocks, 0}, 64, true));
  char to[64];
  int token = 0;
  EXPECT_FALSE(half.link->read(to, sizeof(to), nullptr, {clocks, 0}, &token));
  half.poll();
  EXPECT_EQ(half.notes.refused, std::vector<void*>{&token});
  EXPECT_EQ(half.notes.lost, "");
  EXPECT_FALSE(half.link->reads({clocks, 0}, 64, true));
}

TEST(SingleCopyTest, WhatIsNotThereInPartIsNotToBeSent) {
  using namespace transport::shm;  // NOLINT
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  char* const pages = static_cast<char*>(
      ::mmap(nullptr, 2 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(::mprotect(pages + page, page, PROT_NONE), 0);
  const Secret secret = makeSecret();
  HalfLink half({::getpid(), reinterpret_cast<uint64_t>(&secret), secret});
  std::vector<char> to(2 * page);
  EXPECT_FALSE(half.link->read(to.data(), to.size(), nullptr,
                               {reinterpret_cast<uint64_t>(pages), 0},
                               nullptr));
  half.poll();
  EXPECT_TRUE(half.notes.refused.empty());
  EXPECT_NE(half.notes.lost.find("reading its memory"), std::string::npos);
  ::munmap(pages, 2 * page);
}

// Not even as root. Null: there is none.
char* secretMemory(size_t bytes) {
  constexpr long kMemfdSecret = 447;  // of all architectures; Linux 5.14
  const transport::base::UniqueFd file(
      static_cast<int>(::syscall(kMemfdSecret, 0)));
  if (!file || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
    return nullptr;
  }
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  return memory != MAP_FAILED ? static_cast<char*>(memory) : nullptr;
}

// Messages of two ranks on one core: out of such memory, then out of other.
TEST(SingleCopyTest, MessagesOutOfSuchMemoryArriveAsOthersDo) {
  constexpr size_t kSecretBytes = 1 << 20;
  char* const secret = secretMemory(kSecretBytes);
  SKIP_IF_MISSING("memfd_secret",
                  secret != nullptr
                      ? ""
                      : MakeString("memfd_secret: ", std::strerror(errno)));
  ::munmap(secret, kSecretBytes);
  const ScratchDirectory directory;
  ProcessGroup ranks(2, [&](Child& child) {
    stayOn(0, 1);
    auto device = transport::shm::CreateDevice();
    auto context = device->createContext(child.rank, 2);
    context->setTimeout(contextTimeout());
    context->createAndConnectAllPairs(
        std::make_shared<rendezvous::FileStore>(directory.path()));
    std::string ordinary(kSecretBytes, 'o');
    char* const out =
        child.rank == kReceiver ? ordinary.data() : secretMemory(kSecretBytes);
    ASSERT_NE(out, nullptr);
    for (char* const bytes : {out, ordinary.data()}) {
      auto buffer = context->createUnboundBuffer(bytes, kSecretBytes);
      if (child.rank != kReceiver) {
        std::memset(bytes, 's', kSecretBytes);
        buffer->send(kReceiver, 5);
        buffer->waitSend();
      } else {
        std::memset(bytes, '-', kSecretBytes);
        buffer->recv(1 - kReceiver, 5);
        buffer->waitRecv();
        EXPECT_EQ(ordinary, std::string(kSecretBytes, 's'));
      }
    }
  });
  ranks.joinAll();
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
