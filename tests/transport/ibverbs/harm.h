// Two ranks over RDMA devices in memory, of which rank 0's does harm.
#pragma once

#include <gmock/gmock.h>

#include <array>
#include <barrier>
#include <cstdint>
#include <functional>
#include <string>

#include "tests/transport/contract/contract.h"
#include "tests/transport/ibverbs/fake_devices.h"

GLOO_NAMESPACE_BEGIN
namespace test {

using Texts = std::array<std::string, 2>;
using Harm = std::function<void(FakeVerbs&)>;
using Work = std::function<void(const ContextPtr&)>;

class VerbsFailureTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(mistakesOfFakeVerbs(), ""); }

  // Both ranks; not a message, so that nothing is on its way.
  void meetOutside() { barrier_.arrive_and_wait(); }

  // What both ranks throw from `work` after rank 0 has done harm.
  Texts texts(const Harm& harm, const Work& work,
              const FakeDevices& devices = asynchronousDevices(5)) {
    Texts texts;
    const auto maker = fakeVerbsDevices(devices);
    spawn(Mode::kThreads, maker, 2, [&](const ContextPtr& context) {
      meet(context);
      meetOutside();
      if (context->rank == 0) {
        harm(fakeVerbs());
      }
      try {
        work(context);
      } catch (const IoException& e) {
        texts[static_cast<size_t>(context->rank)] = e.what();
      }
    });
    return texts;
  }

  std::barrier<> barrier_{2};
};

// A message to and fro until something fails.
inline void exchangeForEver(const ContextPtr& context) {
  const int peer = 1 - context->rank;
  Message out(context, 100);
  Message in(context, 100);
  for (;;) {
    in.buffer->recv(peer, 1);
    out.buffer->send(peer, 1);
    in.buffer->waitRecv();
    out.buffer->waitSend();
  }
}

// For a message that never comes.
inline void wait(const ContextPtr& context) {
  Message in(context, size_t{1} << 20);
  in.buffer->recv(1 - context->rank, 1);
  in.buffer->waitRecv();
}

inline uint32_t firstQp(FakeVerbs& fake) { return fake.queuePairs().front(); }

inline void expectBoth(const Texts& texts,
                       const testing::Matcher<std::string>& as) {
  EXPECT_THAT(texts[0], as);
  EXPECT_THAT(texts[1], as);
}

}  // namespace test
GLOO_NAMESPACE_END
