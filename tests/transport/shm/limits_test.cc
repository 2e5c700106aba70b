// What is refused at limits of the system, by its filters and to other users:
// an error that says what to do about it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>

#include "gloo/common/error.h"
#include "gloo/transport/auto/device.h"
#include "gloo/transport/shm/device.h"
#include "gloo/transport/tcp/device.h"
#include "tests/support/descriptors.h"
#include "tests/support/refuse_calls.h"
#include "tests/support/sanitized.h"
#include "tests/support/transports.h"
#include "tests/support/usage.h"
#include "transport/shm/endpoint.h"
#include "transport/shm/poller.h"
#include "transport/shm/process_memory.h"
#include "transport/shm/segment.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace transport::shm;  // NOLINT
using transport::base::UniqueFd;

constexpr RingSize kSize{16, 16 << 10};

// Empty: it does not fail.
std::string failureOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const IoException& e) {
    return e.what();
  }
  return "";
}

void expectFailure(const std::function<void()>& call, const char* what,
                   const char* remedy) {
  const std::string why = failureOf(call);
  EXPECT_NE(why.find(what), std::string::npos) << why;
  EXPECT_NE(why.find(remedy), std::string::npos) << why;
}

// In a process of its own: nothing takes back what the body is refused there.
void inChild(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// ---- Filters of system calls, and what is counted for a user

void refuse(long call, int error, const std::vector<RefusedIf>& when = {}) {
  refuseCall(call, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error), when);
}

TEST(ShmLimitsTest, SharedMemoryThatIsForbiddenNamesWhatGoesWithoutIt) {
  const auto make = [] { Segment::create(kSize, makeSecret()); };
  for (const int error : {EPERM, ENOSYS}) {
    inChild([&] {
      refuse(SYS_memfd_create, error);
      expectFailure(make, "memfd_create", "GLOO_TCP_SHM=0");
    });
    inChild([&] {
      refuse(SYS_fcntl, error, {{1, BPF_JEQ, F_ADD_SEALS}});
      expectFailure(make, "F_ADD_SEALS", "GLOO_AUTO_LINKS=tcp");
    });
  }
}

TEST(ShmLimitsTest, ADeviceNamesNoSharedMemoryThatItCannotHave) {
  inChild([] {
    const auto devices = [] {
      return transport::CreateDevice()->str() + "; " +
             transport::tcp::CreateDevice({})->str();
    };
    EXPECT_NE(devices().find("shm or"), std::string::npos) << devices();
    EXPECT_NE(devices().find("shared memory"), std::string::npos) << devices();
    refuse(SYS_socket, EACCES, {{0, BPF_JEQ, AF_UNIX}});
    EXPECT_EQ(devices().find("shm or"), std::string::npos) << devices();
    EXPECT_EQ(devices().find("shared memory"), std::string::npos) << devices();
  });
}

// As vm.memfd_noexec=2 has it (Linux 6.3), and as older kernels answer.
TEST(ShmLimitsTest, SharedMemoryIsMadeWhereNoneMayBeExecuted) {
  constexpr uint32_t kNoExecSeal = 8;  // MFD_NOEXEC_SEAL
  const bool isKnown =
      UniqueFd(::memfd_create("known", MFD_CLOEXEC | kNoExecSeal)).get() >= 0;
  const auto share = [] {
    const Secret secret = makeSecret();
    const auto made = Segment::create(kSize, secret);
    Segment::adopt(UniqueFd(::dup(made->descriptor())), kSize, secret);
  };
  inChild([&] {
    refuse(SYS_memfd_create, EACCES,
           {{1, BPF_JEQ, MFD_CLOEXEC | MFD_ALLOW_SEALING}});
    EXPECT_EQ(failureOf(share).empty(), isKnown) << failureOf(share);
  });
  inChild([&] {
    refuse(SYS_memfd_create, EINVAL, {{1, BPF_JSET, kNoExecSeal}});
    EXPECT_EQ(failureOf(share), "");
  });
}

TEST(ShmLimitsTest, SocketsThatMayNotBeWatchedNameTheLimit) {
  inChild([] {
    ShmPoller poller;
    Endpoint endpoint;
    refuse(SYS_epoll_ctl, ENOSPC);
    expectFailure([&] { poller.watch(endpoint); }, "epoll_ctl",
                  "fs.epoll.max_user_watches");
  });
}

TEST(ShmLimitsTest, WhyAProcessCannotBeNamedIsSaid) {
  inChild([] {
    const Secret secret = makeSecret();
    refuse(SYS_pidfd_open, EMFILE);
    const ProcessMemory memory(
        ::getpid(), reinterpret_cast<uint64_t>(secret.data()), secret);
    EXPECT_FALSE(memory.permitted());
    EXPECT_NE(memory.trouble().find("errno 24"), std::string::npos)
        << memory.trouble();
    EXPECT_NE(memory.trouble().find("ulimit -n"), std::string::npos)
        << memory.trouble();
  });
}

// ---- Descriptors and memory

// (Without a descriptor left, a sanitizer cannot look at memory.)
#ifndef GLOO_TEST_SANITIZED

void raiseLimit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}

// Whichever of its descriptors is the one too many.
TEST(ShmLimitsTest, WithoutADescriptorADeviceSaysSo) {
  inChild([] {
    int most = 0;
    std::string why = "none";
    while (!why.empty() && most < 64) {
      raiseLimit();
      leaveDescriptors(most++);
      why = failureOf([] { transport::shm::CreateDevice(); });
      EXPECT_TRUE(why.empty() || why.find("ulimit -n") != std::string::npos)
          << why;
    }
    EXPECT_EQ(why, "");
    EXPECT_GE(most, 4);
  });
}

TEST(ShmLimitsTest, WithoutADescriptorForAHandoverItsTakerSaysSo) {
  inChild([] {
    Endpoint endpoint;
    const auto segment = Segment::create(kSize, makeSecret());
    const Secret token = makeSecret();
    const Handover first = dial(endpoint.name());
    handOver(first, token, segment->descriptor());
    leaveDescriptors(0);
    expectFailure([&] { endpoint.take(token); }, "cannot accept shared memory",
                  "ulimit -n");
    raiseLimit();
    expectFailure([&] { endpoint.take(makeSecret()); }, "has not handed over",
                  "ulimit -n");
    EXPECT_TRUE(endpoint.take(token).memory);  // it is still there
  });
}

// Nobody could catch what is thrown there. The first to come needs some.
TEST(ShmLimitsTest, WithoutMemoryNothingIsCollected) {
  Endpoint endpoint;
  const auto segment = Segment::create(kSize, makeSecret());
  const Secret token = makeSecret();
  const Handover lost = dial(endpoint.name());
  {
    const NoMemory none;
    endpoint.collect();
    endpoint.drop(token);
    endpoint.dropAllOf(0);
  }
  handOver(dial(endpoint.name()), token, segment->descriptor());
  EXPECT_EQ(failureOf([&] { endpoint.take(token); }), "");
}

#endif

// ---- Other users

// As /proc/PID/fd would let them, who may look at us.
TEST(ShmLimitsTest, SharedMemoryIsItsOwnersToOpen) {
  const auto segment = Segment::create(kSize, makeSecret());
  struct stat status {};
  ASSERT_EQ(::fstat(segment->descriptor(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, static_cast<mode_t>(S_IRUSR | S_IWUSR));
}

// As dial() does, which would see whose the endpoint is.
void handOverUnasked(const Secret& name, const Secret& token, int memory) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "gloo-";
  for (const char c : name) {
    text += kDigits[static_cast<uint8_t>(c) >> 4];
    text += kDigits[static_cast<uint8_t>(c) & 15];
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, text.data(), text.size());
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  Handover to;
  to.socket = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(to.socket.get(),
                      reinterpret_cast<const sockaddr*>(&address), length),
            0);
  handOver(to, token, memory);
}

TEST(ShmLimitsTest, WhatAnotherUserHandsOverIsNotTaken) {
  SKIP_IF_MISSING("root",
                  ::geteuid() == 0 ? "" : "only root can become another user");
  for (const uid_t user : {0, 1}) {
    Endpoint endpoint;
    const Secret token = makeSecret();
    inChild([&] {
      const auto segment = Segment::create(kSize, makeSecret());
      ASSERT_EQ(::setresuid(user, user, user), 0);
      handOverUnasked(endpoint.name(), token, segment->descriptor());
    });
    const std::string why = failureOf([&] { endpoint.take(token); });
    EXPECT_EQ(why.find("has not handed over") != std::string::npos, user != 0)
        << why;
  }
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
