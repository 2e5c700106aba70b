#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "gloo/common/error.h"
#include "tests/support/sanitized.h"
#include "transport/base/link.h"
#include "transport/shm/allocation.h"
#include "transport/shm/endpoint.h"
#include "transport/shm/greeting.h"
#include "transport/shm/poller.h"
#include "transport/shm/process_memory.h"
#include "transport/shm/segment.h"
#include "transport/shm/sharer.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace transport::shm;  // NOLINT
using transport::base::UniqueFd;

constexpr RingSize kSize{16, 16 << 10};

std::string failureOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const IoException& e) {
    return e.what();
  }
  return "";
}

void expectRefused(UniqueFd memory, const char* says = "not a sealed segment") {
  const std::string why = failureOf(
      [&] { Segment::adopt(std::move(memory), kSize, makeSecret()); });
  EXPECT_NE(why.find(says), std::string::npos) << why;
}

TEST(SegmentTest, WhatOneEndWritesTheOtherReads) {
  const Secret secret = makeSecret();
  auto mine = Segment::create(kSize, secret);
  auto theirs =
      Segment::adopt(UniqueFd(::dup(mine->descriptor())), kSize, secret);
  mine->outgoing(End::kMaker).bytes[5] = 'x';
  theirs->outgoing(End::kTaker).bytes[5] = 'y';
  EXPECT_EQ(theirs->incoming(End::kTaker).bytes[5], 'x');
  EXPECT_EQ(mine->incoming(End::kMaker).bytes[5], 'y');
}

TEST(SegmentTest, NobodyCanChangeItsSize) {
  auto segment = Segment::create(kSize, makeSecret());
  EXPECT_NE(::ftruncate(segment->descriptor(), 0), 0);
  EXPECT_NE(::ftruncate(segment->descriptor(), 1 << 30), 0);
  EXPECT_NE(::fcntl(segment->descriptor(), F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST(SegmentTest, AnotherSecretIsRefused) {
  auto segment = Segment::create(kSize, makeSecret());
  const std::string why = failureOf([&] {
    Segment::adopt(UniqueFd(::dup(segment->descriptor())), kSize, makeSecret());
  });
  EXPECT_NE(why.find("is not the one"), std::string::npos) << why;
}

// Each of these could end the reader by SIGBUS later.
TEST(SegmentTest, MemoryThatCouldVanishIsRefused) {
  const auto bytes = static_cast<off_t>(segmentBytes(kSize));
  UniqueFd unsealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::posix_fallocate(unsealed.get(), 0, bytes), 0);
  expectRefused(std::move(unsealed));

  UniqueFd sparse(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(sparse.get(), bytes), 0);
  ASSERT_EQ(::fcntl(sparse.get(), F_ADD_SEALS,
                    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
            0);
  expectRefused(std::move(sparse), "without all of its memory");

  auto small = Segment::create({16, 8 << 10}, makeSecret());
  expectRefused(UniqueFd(::dup(small->descriptor())));
  expectRefused(UniqueFd(::open("/dev/zero", O_RDWR | O_CLOEXEC)));
}

// In a child, as it lowers its limits.
void expectLimit(int resource, rlim_t limit, const char* remedy) {
  const pid_t child = ::fork();
  if (child == 0) {
    rlimit value{};
    ::getrlimit(resource, &value);
    value.rlim_cur = limit;
    ::setrlimit(resource, &value);
    const std::string why = failureOf([] {
      Segment::create({1024, 1 << 20}, makeSecret());
    });
    // It is no socket that there is no memory for.
    ::_exit(why.find(remedy) != std::string::npos &&
                    why.find("socket") == std::string::npos
                ? 0
                : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
      << remedy << ": " << status;
}

#ifndef GLOO_TEST_SANITIZED
// Of this process, in bytes.
rlim_t addressSpace() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}
#endif

TEST(SegmentTest, LimitsAreErrorsWithARemedy) {
  expectLimit(RLIMIT_FSIZE, 4096, "ulimit -f");
  // The sanitizers need descriptors and address space of their own.
#ifndef GLOO_TEST_SANITIZED
  expectLimit(RLIMIT_NOFILE, 0, "ulimit -n");
  expectLimit(RLIMIT_AS, addressSpace() + (1 << 20), "ulimit -v");
#endif
}

// docs/shm.md has this table.
TEST(SegmentTest, TheMemoryOfARankIsBounded) {
  for (int peers = 1; peers <= 1023; peers++) {
    const RingSize size = ringSizeFor(peers);
    const size_t all = segmentBytes(size) * static_cast<size_t>(peers);
    EXPECT_LE(all, std::max<size_t>(size_t{10} << 20,
                                    static_cast<size_t>(peers) * (44 << 10)))
        << peers;
  }
  EXPECT_EQ(ringSizeFor(1).bytes, 256u << 10);
}

// Else as many bits would be kept as it says.
TEST(GreetingTest, ANodeThatCannotBeIsRefused) {
  Greeting greeting;
  for (const int node : {-1, 0, 1023}) {
    greeting.home = node;
    EXPECT_EQ(decodeGreeting(encode(greeting)).home, node);
  }
  greeting.home = 1 << 30;
  const std::string why = failureOf([&] { decodeGreeting(encode(greeting)); });
  EXPECT_NE(why.find("NUMA node"), std::string::npos) << why;
}

TEST(EndpointTest, AHandoverArrivesWithItsTokenOnly) {
  Endpoint endpoint;
  auto segment = Segment::create(kSize, makeSecret());
  const Secret token = makeSecret();
  const Handover sent = dial(endpoint.name());
  handOver(sent, token, segment->descriptor());
  EXPECT_EQ(sent.pid, ::getpid());
  EXPECT_NE(failureOf([&] { endpoint.take(makeSecret()); }), "");
  const Handover taken = endpoint.take(token);
  EXPECT_EQ(taken.pid, ::getpid());
  EXPECT_TRUE(taken.memory);
}

bool has(Endpoint& endpoint, const Secret& token) {
  return failureOf([&] { endpoint.take(token); }).empty();
}

// The memory of an owner that is gone would stay as long as the endpoint.
TEST(EndpointTest, WhatNobodyTakesIsDropped) {
  Endpoint endpoint;
  const auto segment = Segment::create(kSize, makeSecret());
  const Secret token = makeSecret();
  const auto hand = [&] {
    handOver(dial(endpoint.name()), token, segment->descriptor());
  };
  hand();
  endpoint.drop(token);
  EXPECT_FALSE(has(endpoint, token));
  hand();
  endpoint.collect(Endpoint::Clock::now() + Endpoint::kKept / 2);
  EXPECT_TRUE(endpoint.nextCollection().has_value());
  EXPECT_TRUE(has(endpoint, token));
  EXPECT_FALSE(endpoint.nextCollection().has_value());
  hand();
  endpoint.collect(Endpoint::Clock::now() + 2 * Endpoint::kKept);
  EXPECT_FALSE(has(endpoint, token));
  // Of what comes again, one stays.
  hand();
  endpoint.collect();
  hand();
  hand();
  EXPECT_TRUE(has(endpoint, token));
  EXPECT_FALSE(has(endpoint, token));
}

// Else it would count as on its way, for all processes of the user.
TEST(EndpointTest, WhatHasComeIsLookedAt) {
  Endpoint endpoint;
  ShmPoller poller;
  poller.watch(endpoint);
  EXPECT_EQ(poller.nextTimer(), std::chrono::milliseconds::max());
  const auto segment = Segment::create(kSize, makeSecret());
  handOver(dial(endpoint.name()), makeSecret(), segment->descriptor());
  poller.arm();
  poller.poll();
  poller.poll();
  EXPECT_TRUE(endpoint.nextCollection().has_value());
  EXPECT_LE(poller.nextTimer(), Endpoint::kKept);
}

TEST(SharerTest, LoansEndWithThoseTheyWereFor) {
  transport::base::ProgressDomain domain;
  Endpoint endpoint;
  ShmSharer sharer(domain, endpoint);
  const auto mine = Allocation::make(10000, 1);
  const Secret some = sharer.makeToken();
  const Secret others = sharer.makeToken();
  sharer.lend(*mine, {{sharer.name(), some}, {sharer.name(), others}});
  sharer.refuseLoans(some);
  EXPECT_NE(failureOf([&] { sharer.borrow(mine->id(), some); }), "");
  EXPECT_EQ(failureOf([&] { sharer.borrow(mine->id(), others); }), "");
}

// Which takes tens of milliseconds for the lanes of many ranks.
TEST(SharerTest, MemoryIsMadeWithoutTheLock) {
  transport::base::ProgressDomain domain;
  Endpoint endpoint;
  ShmSharer sharer(domain, endpoint);
  const Secret token = sharer.makeToken();
  size_t chosen = 1;
  auto lock = domain.lock();
  auto given = std::async(std::launch::async, [&] {
    return sharer.give({{8 * pageBytes(), {}}}, {{sharer.name(), token}},
                       &chosen);
  });
  EXPECT_EQ(given.wait_for(std::chrono::seconds(5)), std::future_status::ready);
  lock.unlock();
  EXPECT_EQ(chosen, 0u);
  EXPECT_EQ(sharer.take(8 * pageBytes(), token), given.get());
}

TEST(EndpointTest, AnEndpointThatIsNotHereIsAnError) {
  const std::string why = failureOf([] { dial(makeSecret()); });
  EXPECT_NE(why.find("another host"), std::string::npos) << why;
}

void expectNotNow(const std::function<void()>& call, const char* part) {
  try {
    call();
    FAIL() << "nothing was thrown";
  } catch (const transport::base::NotNowException& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

// Nobody accepts, as long as its rank is at something else.
TEST(EndpointTest, AnEndpointWithTooManyCallersIsAskedAgain) {
  const Secret name{};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = "gloo-" + std::string(2 * name.size(), '0');
  std::memcpy(address.sun_path + 1, text.data(), text.size());
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  ASSERT_EQ(
      ::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  std::vector<Handover> callers;
  expectNotNow(
      [&] {
        for (int i = 0; i < 10; i++) {
          callers.push_back(dial(name));
        }
      },
      "wait to be accepted");
}

// In a child, as it gives up its rights: to who has them there is no limit.
TEST(EndpointTest, TooManyDescriptorsOnTheirWayAreAskedForAgain) {
  constexpr int kMost = 40;
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit value{kMost, kMost};
    [[maybe_unused]] const int mayFail = ::setuid(54321);
    ::setrlimit(RLIMIT_NOFILE, &value);
    const Endpoint endpoint;
    const Handover to = dial(endpoint.name());
    expectNotNow(
        [&] {
          for (int i = 0; i < 2 * kMost + 10; i++) {
            handOver(to, makeSecret(), STDIN_FILENO);
          }
        },
        "ulimit -n");
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(ProcessMemoryTest, AProcessWithoutTheSecretIsNotRead) {
  const Secret secret = makeSecret();
  const Secret other = makeSecret();
  const auto at = reinterpret_cast<uint64_t>(secret.data());
  EXPECT_TRUE(ProcessMemory(::getpid(), at, secret).permitted());
  EXPECT_FALSE(ProcessMemory(::getpid(), at, other).permitted());
  EXPECT_FALSE(ProcessMemory(::getpid(), 8, secret).permitted());
  EXPECT_FALSE(ProcessMemory(0, at, secret).permitted());
}

TEST(ProcessMemoryTest, MemoryThatIsNotThereIsAnError) {
  const Secret secret = makeSecret();
  ProcessMemory memory(::getpid(), reinterpret_cast<uint64_t>(secret.data()),
                       secret);
  char byte;
  EXPECT_EQ(memory.read(&byte, 8, 1), EFAULT);
}

volatile std::sig_atomic_t signals = 0;

// A profiler's, say. One comes in the middle of any call before long.
TEST(ProcessMemoryTest, SignalsAreNoEndOfTheProcess) {
  const Secret secret = makeSecret();
  const auto at = reinterpret_cast<uint64_t>(secret.data());
  ProcessMemory memory(::getpid(), at, secret);
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) { signals = signals + 1; };
  action.sa_flags = SA_RESTART;
  ASSERT_EQ(::sigaction(SIGALRM, &action, &before), 0);
  const itimerval often{{0, 20}, {0, 20}};
  const itimerval never{};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &often, nullptr), 0);
  int error = 0;
  char byte = 0;
  while (signals < 5000 && error == 0) {
    error = memory.read(&byte, at, 1);
  }
  ::setitimer(ITIMER_REAL, &never, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
  EXPECT_EQ(error, 0);
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
