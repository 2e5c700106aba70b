#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "gloo/internal/statistics.h"
#include "gloo/transport/shm/device.h"
#include "gloo/transport/unbound_buffer.h"
#include "tests/support/spawn.h"
#include "tests/support/usage.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

// A rank whose peer answers at once sees nothing but memory. (With fewer cores
// than ranks a wait may have to sleep: then the count is of the sleeps.)
TEST(ShmDeviceTest, ASmallMessageCostsNoSystemCallAndNoAllocation) {
  constexpr uint64_t kMessages = 20000;
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
        run();
        const auto after = internal::statisticsOf(*device);
        EXPECT_EQ(allocations() - allocated, 0u);
        const uint64_t calls = after.systemCalls - before.systemCalls;
        const uint64_t waits = after.blockingWaits - before.blockingWaits;
        EXPECT_LE(calls, 8 * waits + kMessages / 100);
        EXPECT_EQ(after.registrations, before.registrations);
        run();
      });
}

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
