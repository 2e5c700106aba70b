// The contract suite: what gloo/transport/*.h promises, for every transport of
// tests/support/transports.cc, with threads and with processes as ranks.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "gloo/common/error.h"
#include "gloo/common/logging.h"
#include "gloo/config.h"
#include "gloo/transport/context.h"
#include "tests/support/bytes.h"
#include "tests/support/spawn.h"
#include "tests/support/transports.h"

GLOO_NAMESPACE_BEGIN
namespace test {

using ContextPtr = std::shared_ptr<transport::Context>;
using BufferPtr = std::unique_ptr<transport::UnboundBuffer>;

struct ContractCase {
  const TestTransport* transport;
  Mode mode;
};

// How GoogleTest prints it.
inline void PrintTo(const ContractCase& c, std::ostream* out) {
  *out << c.transport->name << ", " << name(c.mode);
}

inline std::vector<ContractCase> contractCases() {
  std::vector<ContractCase> cases;
  for (const TestTransport& transport : transports()) {
    cases.push_back({&transport, Mode::kThreads});
    if (transport.processes) {
      cases.push_back({&transport, Mode::kProcesses});
    }
  }
  return cases;
}

class ContractTest : public ::testing::TestWithParam<ContractCase> {
 protected:
  void SetUp() override { SKIP_UNLESS_AVAILABLE(*GetParam().transport); }

  const DeviceMaker& maker() const { return GetParam().transport->make; }
  Mode mode() const { return GetParam().mode; }
  void run(int size, const TransportFunction& fn) const {
    spawn(mode(), maker(), size, fn);
  }
};

// Bytes and the buffer over them.
class Message {
 public:
  Message(const ContextPtr& context, std::vector<char> bytes)
      : bytes(std::move(bytes)),
        buffer(context->createUnboundBuffer(this->bytes.data(),
                                            this->bytes.size())) {}
  Message(const ContextPtr& context, size_t size)
      : Message(context, std::vector<char>(size)) {}

  // Whether all bytes are those of pattern(seed).
  ::testing::AssertionResult holds(uint64_t seed) const {
    const size_t at = mismatch(seed, bytes.data(), bytes.size());
    if (at == bytes.size()) {
      return ::testing::AssertionSuccess();
    }
    return ::testing::AssertionFailure()
           << "message " << seed << " differs at byte " << at << " of "
           << bytes.size();
  }

  std::vector<char> bytes;
  BufferPtr buffer;
};

constexpr uint64_t kSignalSlot = 0x7f00000000000000;

// A message without bytes: tells a peer how far this rank is.
inline void signal(const ContextPtr& context, int peer) {
  auto buffer = context->createUnboundBuffer(nullptr, 0);
  buffer->send(peer, kSignalSlot);
  EXPECT_TRUE(buffer->waitSend());
}

inline void awaitSignal(const ContextPtr& context, int peer) {
  auto buffer = context->createUnboundBuffer(nullptr, 0);
  buffer->recv(peer, kSignalSlot);
  EXPECT_TRUE(buffer->waitRecv());
}

// Returns when all ranks have called it.
inline void meet(const ContextPtr& context) {
  auto buffer = context->createUnboundBuffer(nullptr, 0);
  for (int peer = 0; peer < context->size; peer++) {
    if (peer != context->rank) {
      buffer->send(peer, kSignalSlot + 1);
      buffer->recv(peer, kSignalSlot + 1);
    }
  }
  for (int i = 1; i < context->size; i++) {
    EXPECT_TRUE(buffer->waitSend());
    EXPECT_TRUE(buffer->waitRecv());
  }
}

}  // namespace test
GLOO_NAMESPACE_END

#define GLOO_CONTRACT_SUITE(Suite)                                          \
  INSTANTIATE_TEST_SUITE_P(                                                 \
      , Suite, ::testing::ValuesIn(contractCases()), [](const auto& info) { \
        return info.param.transport->name + "_" + name(info.param.mode);    \
      })
