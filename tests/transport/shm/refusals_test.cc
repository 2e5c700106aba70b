// Ranks of one host that may not do to each other what others may: what they
// are told, and what goes on all the same.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <fstream>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "gloo/common/error.h"
#include "gloo/common/logging.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/transport/shm/device.h"
#include "gloo/transport/unbound_buffer.h"
#include "tests/support/bytes.h"
#include "tests/support/cores.h"
#include "tests/support/process_group.h"
#include "tests/support/refuse_calls.h"
#include "tests/support/sanitized.h"
#include "tests/support/spawn.h"
#include "tests/support/transports.h"
#include "transport/shm/allocation.h"
#include "transport/shm/segment.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

// Of a child that does it. 0: without a failure.
int statusOf(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      body();
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

// ---- Who may not read the other's memory

void exchangeLong(const std::shared_ptr<transport::Context>& context) {
  constexpr size_t kBytes = 3000000;
  const auto of = [](int rank) {
    return std::string(kBytes, static_cast<char>('a' + rank));
  };
  const int peer = 1 - context->rank;
  std::string out = of(context->rank);
  std::string in(kBytes, '-');
  auto send = context->createUnboundBuffer(out.data(), kBytes);
  auto recv = context->createUnboundBuffer(in.data(), kBytes);
  send->send(peer, 5);
  recv->recv(peer, 5);
  send->waitSend();
  recv->waitRecv();
  EXPECT_EQ(in, of(peer));
}

// What two ranks log whom the kernel answers so.
std::string logWithReadsAnswered(int error) {
  const LogLevel before = logLevel();
  setLogLevel(LogLevel::INFO);
  testing::internal::CaptureStderr();
  spawn(
      Mode::kProcesses,
      [error] {
        if (error != 0) {
          refuseCall(SYS_process_vm_readv,
                     SECCOMP_RET_ERRNO | static_cast<uint32_t>(error));
        }
        return transport::shm::CreateDevice();
      },
      2, &exchangeLong);
  setLogLevel(before);
  return testing::internal::GetCapturedStderr();
}

TEST(ShmRefusalsTest, ReadingThatIsForbiddenIsLoggedAndMessagesArrive) {
  EXPECT_NE(logWithReadsAnswered(EPERM).find(
                "memory cannot be read (the kernel forbids it"),
            std::string::npos);
  EXPECT_NE(logWithReadsAnswered(ENOSYS).find(
                "memory cannot be read (the kernel, or a filter"),
            std::string::npos);
  if (::geteuid() == 0) {  // whom ptrace_scope does not stop
    EXPECT_EQ(logWithReadsAnswered(0).find("cannot be read"),
              std::string::npos);
  }
}

TEST(ShmRefusalsTest, NobodyIsPermittedToReadUnasked) {
  const auto statusOfDevice = [](bool any) {
    return statusOf([any] {
      refuseCall(SYS_prctl, SECCOMP_RET_KILL_PROCESS,
                 {{0, BPF_JEQ, PR_SET_PTRACER}});
      transport::shm::attr attr;
      attr.allowAnyTracer = any;
      transport::shm::CreateDevice(attr);
    });
  };
  EXPECT_EQ(statusOfDevice(false), 0);
  const int asked = statusOfDevice(true);
  EXPECT_TRUE(WIFSIGNALED(asked) && WTERMSIG(asked) == SIGSYS) << asked;
}

// ---- Who may not do so any more

// Two ranks on one core, so that long messages are read. What they log.
std::string logOnOneCore(const std::function<void(Seat&, DeviceMaker)>& rank) {
  const LogLevel before = logLevel();
  setLogLevel(LogLevel::INFO);
  testing::internal::CaptureStderr();
  spawnSeats(Mode::kProcesses, 2, [&](Seat& seat) {
    stayOn(0, 1);
    rank(seat, [] {
      transport::shm::attr attr;
      attr.allowAnyTracer = true;
      return transport::shm::CreateDevice(attr);
    });
  });
  setLogLevel(before);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(log.find("Failure"), std::string::npos) << log;
  return log;
}

std::shared_ptr<transport::Context> connected(Seat& seat,
                                              const DeviceMaker& maker) {
  auto context = maker()->createContext(seat.rank, seat.size);
  context->setTimeout(contextTimeout());
  context->createAndConnectAllPairs(seat.store);
  return context;
}

bool isForbiddenMeanwhile(const std::string& log, const std::string& why) {
  return log.find("memory cannot be read any more (" + why) !=
         std::string::npos;
}

std::string missingTracer() {
  int scope = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  return scope < 2 ? "" : "ptrace_scope lets ordinary users read nothing";
}

// Root may read in any case.
void becomeOrdinary() {
  ASSERT_TRUE(::geteuid() != 0 || ::setresuid(1, 1, 1) == 0);
  ASSERT_EQ(::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
}

TEST(ShmRefusalsTest, AProcessMayForbidItMeanwhile) {
  SKIP_IF_MISSING("ptrace", missingTracer());
  const std::string log =
      logOnOneCore([](Seat& seat, const DeviceMaker& maker) {
        const auto context = connected(seat, maker);
        becomeOrdinary();
        if (seat.rank == 0) {
          ASSERT_EQ(::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), 0);
        }
        exchangeLong(context);
        exchangeLong(context);
      });
  EXPECT_TRUE(isForbiddenMeanwhile(log, "the kernel forbids it")) << log;
}

TEST(ShmRefusalsTest, AFilterMayForbidItMeanwhile) {
  for (const int error : {EPERM, ENOSYS}) {
    const std::string log =
        logOnOneCore([&](Seat& seat, const DeviceMaker& maker) {
          const auto context = connected(seat, maker);
          refuseCall(SYS_process_vm_readv,
                     SECCOMP_RET_ERRNO | static_cast<uint32_t>(error), {},
                     Refused::kAllThreads);
          exchangeLong(context);
          exchangeLong(context);
        });
    EXPECT_TRUE(isForbiddenMeanwhile(log, "the kernel")) << log;
  }
}

// Of which some bytes have been read already.
TEST(ShmRefusalsTest, AFilterMayForbidItInTheMiddleOfAMessage) {
  constexpr size_t kBytes = 32 << 20;
  logOnOneCore([](Seat& seat, const DeviceMaker& maker) {
    const auto context = connected(seat, maker);
    std::vector<char> bytes(kBytes, 'x');
    char here = 0;
    auto message = context->createUnboundBuffer(bytes.data(), kBytes);
    auto behind = context->createUnboundBuffer(&here, 1);
    if (seat.rank == 0) {
      message->send(1, 1);
      behind->send(1, 2);
      message->waitSend();
      behind->waitSend();
      return;
    }
    std::fill(bytes.begin(), bytes.end(), '-');
    behind->recv(0, 2);
    behind->waitRecv();
    message->recv(0, 1);
    refuseCall(SYS_process_vm_readv, SECCOMP_RET_ERRNO | EPERM, {},
               Refused::kAllThreads);
    message->waitRecv();
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 'x'),
              static_cast<ptrdiff_t>(kBytes));
  });
}

// The kernel knows a process by its main thread.
TEST(ShmRefusalsTest, AMainThreadMayEndMeanwhile) {
  const std::string log =
      logOnOneCore([](Seat& seat, const DeviceMaker& maker) {
        if (seat.rank == 1) {
          exchangeLong(connected(seat, maker));
          return;
        }
        std::promise<void> ready;
        std::thread worker([&] {
          int status = 1;
          try {
            const auto context = connected(seat, maker);
            ready.set_value();
            const iovec none{&status, sizeof(status)};
            while (::process_vm_readv(::getpid(), &none, 1, &none, 1, 0) > 0) {
              std::this_thread::yield();
            }
            exchangeLong(context);
            status = testing::Test::HasFailure() ? 1 : 0;
          } catch (const std::exception& e) {
            ADD_FAILURE() << e.what();
          }
          ::_exit(status);
        });
        ready.get_future().wait();
        ::syscall(SYS_exit, 0);
      });
  EXPECT_TRUE(isForbiddenMeanwhile(log, "its main thread has ended")) << log;
}

// Memory that is gone is the sender's fault, and no rank's death.
TEST(ShmRefusalsTest, BothRanksNameWhatOneOfThemHasFound) {
  logOnOneCore([](Seat& seat, const DeviceMaker& maker) {
    constexpr size_t kBytes = 3 << 20;
    const auto context = connected(seat, maker);
    void* const memory =
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    char here = 0;
    auto message = context->createUnboundBuffer(memory, kBytes);
    auto behind = context->createUnboundBuffer(&here, 1);
    try {
      if (seat.rank == 0) {
        message->send(1, 1);
        ::munmap(memory, kBytes);
        behind->send(1, 2);
        message->waitSend();
      } else {
        behind->recv(0, 2);
        behind->waitRecv();
        message->recv(0, 1);
        message->waitRecv();
      }
      ADD_FAILURE() << "rank " << seat.rank << " has not noticed";
    } catch (const IoException& e) {
      const std::string text = e.what();
      EXPECT_NE(text.find("reading its memory: Bad address"), std::string::npos)
          << text;
      EXPECT_NE(text.find("found by rank 1"), std::string::npos) << text;
    }
  });
}

// ---- Other users

TEST(ShmRefusalsTest, AnotherUserIsAnErrorOnBothSides) {
  SKIP_IF_MISSING("root",
                  ::geteuid() == 0 ? "" : "only root can become another user");
  for (const int other : {0, 1}) {
    const ScratchDirectory directory;
    ::chmod(directory.path().c_str(), 0777);
    ProcessGroup ranks(2, [&](Child& child) {
      if (child.rank == other) {
        ASSERT_EQ(::setresuid(1, 1, 1), 0);
      }
      auto device = transport::shm::CreateDevice();
      auto context = device->createContext(child.rank, 2);
      context->setTimeout(std::chrono::seconds(20));
      const auto since = now();
      try {
        context->createAndConnectAllPairs(
            std::make_shared<rendezvous::FileStore>(directory.path()));
        ADD_FAILURE() << "they are connected";
      } catch (const IoException& e) {
        EXPECT_NE(std::string(e.what()).find("of another user"),
                  std::string::npos)
            << e.what();
      }
      EXPECT_LT(now() - since, std::chrono::seconds(5) * slowness());
    });
    ranks.joinAll();
  }
}

// ---- Mappings

#ifndef GLOO_TEST_SANITIZED  // their own memory would need some
// Pages that differ from their neighbours, until there are no more.
void useUpMappings() {
  constexpr size_t kPage = 4096;
  size_t most = 0;
  ASSERT_TRUE(std::ifstream("/proc/sys/vm/max_map_count") >> most);
  void* const region =
      ::mmap(nullptr, (most + 2) * kPage, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(region, MAP_FAILED);
  size_t page = 1;
  while (page < most && ::mprotect(static_cast<char*>(region) + page * kPage,
                                   kPage, PROT_READ) == 0) {
    page += 2;
  }
  ASSERT_LT(page, most) << "so many are not possible";
  // Those take two each; these are nobody's neighbours.
  while (::mmap(nullptr, kPage, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0) !=
         MAP_FAILED) {
  }
}

TEST(ShmRefusalsTest, TooManyMappingsAreAnErrorWithTheRemedy) {
  const auto expectRemedy = [](const std::function<void()>& call) {
    try {
      call();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const IoException& e) {
      EXPECT_NE(std::string(e.what()).find("vm.max_map_count"),
                std::string::npos)
          << e.what();
    }
  };
  EXPECT_EQ(
      statusOf([&] {
        useUpMappings();
        using namespace transport::shm;  // NOLINT
        expectRemedy([] { Segment::create({1024, 1 << 20}, makeSecret()); });
        expectRemedy([] { Allocation::make(1 << 20, 1); });
        expectRemedy([] { Allocation::make(1 << 20, 2 << 20); });
      }),
      0);
}
#endif

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
