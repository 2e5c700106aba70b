// A rank that has no memory for what others send it: its context fails and says
// so everywhere, and nothing worse happens.
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "tests/support/sanitized.h"
#include "tests/support/usage.h"
#include "tests/transport/contract/contract.h"

#ifndef GLOO_TEST_SANITIZED

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

// More than are there from the start.
constexpr int kMessages = 100;
// What is kept for 64 messages, and bounce memory for long ones, take more.
constexpr size_t kRefused = 4096;
constexpr uint64_t kSlot = 7;
const char* const kCause = "rank 1 was out of memory for a message of rank 0";

// One rank is refused memory: it alone, where ranks can be processes.
std::vector<ContractCase> cases() {
  std::vector<ContractCase> cases = contractCases();
  std::erase_if(cases, [](const ContractCase& c) {
    return c.transport->processes && c.mode != Mode::kProcesses;
  });
  return cases;
}

class NoMemoryTest : public ContractTest {
 protected:
  // Rank 1 does `unaware` while memory is refused and messages come that it
  // has no receive for.
  template <typename Unaware>
  void flood(size_t bytes, size_t refused, const Unaware& unaware) const {
    run(2, [&](const ContextPtr& context) {
      meet(context);
      if (context->rank == 0) {
        send(context, bytes, refused > 0 ? kCause : "rank 1");
        return;
      }
      char byte = 0;
      auto never = context->createUnboundBuffer(&byte, 1);
      never->recv(0, kSlot + 1);
      auto ready = context->createUnboundBuffer(nullptr, 0);
      {
        const NoMemory none(refused);
        ready->send(0, kSignalSlot);
        unaware(*context, *never);
      }
      expectFailure([&] { never->waitRecv(); }, kCause);
      expectFailure([&] { context->createUnboundBuffer(&byte, 1); }, kCause);
    });
  }

  static void send(const ContextPtr& context, size_t bytes,
                   const std::string& part) {
    const std::vector<char> message(bytes);
    auto buffer =
        context->createUnboundBuffer(const_cast<char*>(message.data()), bytes);
    awaitSignal(context, 1);
    expectFailure(
        [&] {
          for (int i = 0; i < kMessages; i++) {
            buffer->send(1, kSlot);
          }
          buffer->recv(1, kSlot + 2);
          buffer->waitRecv();
        },
        part);
  }

  template <typename Call>
  static void expectFailure(const Call& call, const std::string& part) {
    try {
      call();
      ADD_FAILURE() << "no error";
    } catch (const IoException& e) {
      const std::string text = e.what();
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
  }

  static void waitInVain(transport::Context&, transport::UnboundBuffer& never) {
    expectFailure([&] { never.waitRecv(); }, kCause);
  }

  // The background thread takes the messages.
  static void watch(transport::Context& context, transport::UnboundBuffer&) {
    const auto limit = std::chrono::steady_clock::now() + contextTimeout();
    while (context.getPair(0)->isConnected() &&
           std::chrono::steady_clock::now() < limit) {
      std::this_thread::yield();
    }
  }
};

TEST_P(NoMemoryTest, ForShortMessages) { flood(40, kRefused, waitInVain); }

TEST_P(NoMemoryTest, ForLongMessages) { flood(30000, kRefused, waitInVain); }

TEST_P(NoMemoryTest, WhileNobodyWaits) { flood(40, kRefused, watch); }

// Nor for what should be said of it: the peer loses the connection.
TEST_P(NoMemoryTest, AtAll) { flood(40, 0, watch); }

INSTANTIATE_TEST_SUITE_P(, NoMemoryTest, ::testing::ValuesIn(cases()),
                         [](const auto& info) {
                           return info.param.transport->name + "_" +
                                  name(info.param.mode);
                         });

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END

#endif
