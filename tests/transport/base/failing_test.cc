// A context fails while memory is short: everybody hears of it all the same.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/fake_link.h"
#include "tests/support/sanitized.h"
#include "tests/support/usage.h"
#include "tests/transport/contract/contract.h"
#include "transport/base/context.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

class FailingTest : public ::testing::TestWithParam<FakeShape> {};

TEST_P(FailingTest, ALinkWithoutMemoryForItsLastFrameEnds) {
  FakeOptions options;
  options.shape = GetParam();
  spawn(Mode::kThreads, fakeDevices(options), 3,
        [&](const ContextPtr& context) {
          meet(context);
          char byte = 0;
          auto buffer = context->createUnboundBuffer(&byte, 1);
          const int next = (context->rank + 1) % 3;
          buffer->recv(next, 99);
          if (context->rank == 0) {
            options.watch->withoutMemory = 2;
            EXPECT_THROW(buffer->waitRecv(std::chrono::milliseconds(10)),
                         TimeoutException);
            EXPECT_EQ(options.watch->withoutMemory, 0);
          } else {
            EXPECT_THROW(buffer->waitRecv(), IoException);
          }
        });
}

TEST_P(FailingTest, WhatComesWhileTheOthersAreAskedWhyIsNoTimeout) {
  FakeOptions options;
  options.shape = GetParam();
  spawn(Mode::kThreads, fakeDevices(options), 2,
        [&](const ContextPtr& context) {
          auto& internals = dynamic_cast<transport::base::Context&>(*context);
          {
            auto lock = internals.lock();
            internals.failTimeout(
                lock, [] { return true; },
                [&] {
                  return internals.causeOf(internal::Cause::Kind::kTimeout, 0,
                                           "nothing came");
                });
          }
          meet(context);
        });
}

#ifndef GLOO_TEST_SANITIZED

// As no_memory_test.cc of the contract, over links that take no memory.
TEST_P(FailingTest, AReceiverWithoutMemoryFailsAndSaysSo) {
  constexpr size_t kOfPools = 4096;  // more than fake links take at once
  for (const size_t bytes : {40, 1000}) {
    FakeOptions options;
    options.shape = GetParam();
    options.creditBytes = 1 << 20;
    spawn(Mode::kThreads, fakeDevices(options), 2,
          [&](const ContextPtr& context) {
            std::vector<char> data(bytes);
            auto buffer = context->createUnboundBuffer(data.data(), bytes);
            meet(context);
            std::optional<NoMemory> none;
            if (context->rank == 1) {
              none.emplace(kOfPools);
              signal(context, 0);
            } else {
              awaitSignal(context, 1);
            }
            try {
              for (int i = 0; context->rank == 0 && i < 100; i++) {
                buffer->send(1, 7);
                buffer->waitSend();  // its place is used again
              }
              buffer->recv(1 - context->rank, 8);
              buffer->waitRecv();
              ADD_FAILURE() << "no error";
            } catch (const IoException& e) {
              EXPECT_NE(std::string(e.what()).find(
                            "rank 1 was out of memory for a message of rank 0"),
                        std::string::npos)
                  << e.what();
            }
          });
  }
}

#endif

INSTANTIATE_TEST_SUITE_P(, FailingTest,
                         ::testing::Values(FakeShape::kStream,
                                           FakeShape::kPull),
                         [](const auto& info) { return name(info.param); });

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
