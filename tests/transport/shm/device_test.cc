#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include "gloo/internal/statistics.h"
#include "gloo/transport/shm/device.h"
#include "gloo/transport/unbound_buffer.h"
#include "tests/support/process_group.h"
#include "tests/support/refuse_calls.h"
#include "tests/support/spawn.h"
#include "tests/support/usage.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

// A rank whose peer answers at once sees nothing but memory. (With fewer cores
// than ranks a wait may have to sleep: then the count is of the sleeps.)
TEST(ShmDeviceTest, ASmallMessageCostsNoSystemCallAndNoAllocation) {
  constexpr uint64_t kMessages = 20000;
  constexpr std::chrono::milliseconds kLooksApart(20);
  auto device = transport::shm::CreateDevice();
  spawn(
      Mode::kThreads, [&] { return device; }, 2,
      [&](const std::shared_ptr<transport::Context>& context) {
        const int peer = 1 - context->rank;
        uint64_t out = 0;
        uint64_t in = 0;
        auto send = context->createUnboundBuffer(&out, sizeof(out));
        auto recv = context->createUnboundBuffer(&in, sizeof(in));
        const auto run = [&] {
          for (uint64_t i = 0; i < kMessages; i++) {
            recv->recv(peer, 5);
            send->send(peer, 5);
            recv->waitRecv();
            send->waitSend();
          }
        };
        run();
        const auto before = internal::statisticsOf(*device);
        const uint64_t allocated = allocations();
        const auto since = now();
        run();
        // Of both ranks: a look at the sockets now and then.
        const auto looks =
            static_cast<uint64_t>(2 * ((now() - since) / kLooksApart + 2));
        const auto after = internal::statisticsOf(*device);
        EXPECT_EQ(allocations() - allocated, 0u);
        const uint64_t calls = after.systemCalls - before.systemCalls;
        const uint64_t waits = after.blockingWaits - before.blockingWaits;
        EXPECT_LE(calls, 8 * waits + looks);
        EXPECT_EQ(after.registrations, before.registrations);
        run();
      });
}

// The kernel answers this thread from now on with `error`, as old ones and the
// filters of some containers do.
void refuseFutexWaitv(int error) {
  constexpr long kFutexWaitv = 449;
  refuseCall(kFutexWaitv, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error));
}

// With and without it, all that sleep are woken, and sleep.
void exchangeAsleep(int rounds, const transport::Device& device,
                    const std::shared_ptr<transport::Context>& context) {
  const int peer = 1 - context->rank;
  const uint64_t before = internal::statisticsOf(device).blockingWaits;
  const auto started = cpuTime();
  uint64_t out = 0;
  uint64_t in = 0;
  auto send = context->createUnboundBuffer(&out, sizeof(out));
  auto recv = context->createUnboundBuffer(&in, sizeof(in));
  for (int i = 0; i < rounds; i++) {
    out = static_cast<uint64_t>(i);
    if (context->rank == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      send->send(peer, 5);
      send->waitSend();
      recv->recv(peer, 5);
      recv->waitRecv();
    } else {
      recv->recv(peer, 5);
      recv->waitRecv();
      send->send(peer, 5);
      send->waitSend();
    }
    ASSERT_EQ(in, static_cast<uint64_t>(i));
  }
  EXPECT_LT(cpuTime() - started,
            std::chrono::milliseconds(3 * rounds) * slowness());
  EXPECT_GE(internal::statisticsOf(device).blockingWaits - before,
            context->rank == 0 ? 0u : static_cast<uint64_t>(rounds) / 2);
}

class SleepTest : public ::testing::TestWithParam<int> {};

TEST_P(SleepTest, AWaiterSleepsAndIsWoken) {
  std::shared_ptr<transport::Device> device;
  spawn(
      Mode::kProcesses,
      [&] {
        ::setenv("GLOO_SPIN_US", "0", 1);
        if (GetParam() != 0) {
          refuseFutexWaitv(GetParam());
        }
        device = transport::shm::CreateDevice();
        return device;
      },
      2,
      [&](const std::shared_ptr<transport::Context>& context) {
        exchangeAsleep(20, *device, context);
      });
}

// Words are there, and refused from some moment on.
TEST(SleepAnywhereTest, AFilterThatIsSetMeanwhileChangesNothing) {
  std::shared_ptr<transport::Device> device;
  spawn(
      Mode::kProcesses,
      [&] {
        ::setenv("GLOO_SPIN_US", "0", 1);
        device = transport::shm::CreateDevice();
        return device;
      },
      2,
      [&](const std::shared_ptr<transport::Context>& context) {
        exchangeAsleep(10, *device, context);
        refuseFutexWaitv(ENOSYS);
        exchangeAsleep(20, *device, context);
      });
}

INSTANTIATE_TEST_SUITE_P(, SleepTest, ::testing::Values(0, ENOSYS, EPERM),
                         [](const auto& info) {
                           return info.param == 0        ? "onWords"
                                  : info.param == ENOSYS ? "withoutThem"
                                                         : "forbidden";
                         });

std::string mappedMemory() {
  std::ifstream maps("/proc/self/maps");
  return {std::istreambuf_iterator<char>(maps), {}};
}

TEST(ShmDeviceTest, NothingIsLeftAfterwards) {
  spawn(
      Mode::kThreads, [] { return transport::shm::CreateDevice(); }, 3,
      [](const std::shared_ptr<transport::Context>&) {
        EXPECT_NE(mappedMemory().find("memfd:gloo"), std::string::npos);
      });
  EXPECT_EQ(mappedMemory().find("memfd:gloo"), std::string::npos);
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
