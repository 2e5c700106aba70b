// A rank that cannot make its end of a pair, for reasons of its own: both say
// which, and nobody takes it for dead.
#include <gmock/gmock.h>

#include <array>
#include <barrier>
#include <cerrno>
#include <string>

#include "tests/transport/contract/contract.h"
#include "tests/transport/ibverbs/fake_devices.h"
#include "transport/base/context.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using testing::ContainsRegex;
using testing::Each;

class VerbsTroubleTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(mistakesOfFakeVerbs(), ""); }
};

// Of which a frame's head takes a part.
TEST_F(VerbsTroubleTest, AnEagerMessageFitsTheLongestOfTheDevice) {
  FakeDevices devices = plainDevices();
  devices.config.ports[0].maxMessageBytes = 4096;
  spawn(Mode::kThreads, fakeVerbsDevices(devices), 2,
        [](const ContextPtr& context) {
          const int peer = 1 - context->rank;
          for (const size_t size : {3000, 4032, 4033, 4096, 10000, 100000}) {
            Message out(context, pattern(size, size));
            Message in(context, size);
            in.buffer->recv(peer, 1);
            out.buffer->send(peer, 1);
            EXPECT_TRUE(in.buffer->waitRecv());
            EXPECT_TRUE(out.buffer->waitSend());
            EXPECT_TRUE(in.holds(size));
          }
        });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
