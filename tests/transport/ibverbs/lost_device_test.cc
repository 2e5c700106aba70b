// Devices that are removed or reset under their users, or whose completion
// queues break: everybody hears of it, and no thread spins afterwards.
#include <gmock/gmock.h>
#include <poll.h>

#include <barrier>
#include <cerrno>
#include <functional>
#include <string>

#include "tests/support/process_group.h"
#include "tests/support/usage.h"
#include "tests/transport/contract/contract.h"
#include "tests/transport/ibverbs/fake_devices.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using testing::HasSubstr;

class VerbsLostDeviceTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(mistakesOfFakeVerbs(), ""); }

  enum class Traffic { kNone, kMessages };

  // Both ranks wait for what never comes, and throw texts with `named` in them;
  // then they are idle. Before they wait they may send something else: rank 0
  // does so after the harm.
  void expectTheEnd(const std::function<void(FakeVerbs&)>& harm,
                    const std::string& named,
                    Traffic traffic = Traffic::kNone) {
    std::barrier<> together(2);
    spawn(Mode::kThreads, fakeVerbsDevices(plainDevices()), 2,
          [&](const ContextPtr& context) {
            const Leaving leaving{together};
            meet(context);
            Message in(context, 100);
            Message out(context, 100);
            in.buffer->recv(1 - context->rank, 1);
            together.arrive_and_wait();
            if (context->rank == 0) {
              harm(fakeVerbs());
            }
            expectFailure(
                [&] {
                  if (traffic == Traffic::kMessages) {
                    out.buffer->send(1 - context->rank, 2);
                  }
                  in.buffer->waitRecv(seconds(5) * slowness());
                },
                named);
            together.arrive_and_wait();
            if (context->rank == 0) {
              expectIdle();
            }
            together.arrive_and_wait();
          });
  }

 private:
  // Nobody waits for a rank that has thrown.
  struct Leaving {
    std::barrier<>& together;
    ~Leaving() { together.arrive_and_drop(); }
  };

  static void expectFailure(const std::function<void()>& work,
                            const std::string& named) {
    try {
      work();
      ADD_FAILURE() << "something was received";
    } catch (const IoException& e) {
      EXPECT_THAT(e.what(), HasSubstr(named));
    }
  }

  // No thread of this process is at work, over a second.
  static void expectIdle() {
    const nanoseconds before = cpuTime();
    ::poll(nullptr, 0, 1000);
    EXPECT_LT(cpuTime() - before, milliseconds(50) * slowness());
  }
};

TEST_F(VerbsLostDeviceTest, ADeviceThatIsRemovedIsNamedAndLeavesNoThreadBusy) {
  expectTheEnd([](FakeVerbs& fake) { fake.remove(); },
               "RDMA device fake0 is gone (was it removed, or reset?)");
}

TEST_F(VerbsLostDeviceTest, ADeviceThatSaysGoodbyeLeavesNoThreadBusyEither) {
  expectTheEnd(
      [](FakeVerbs& fake) {
        fake.raise(IBV_EVENT_DEVICE_FATAL);
        fake.remove();
      },
      "local catastrophic error");
}

// Both may be armed before the harm, and then still tell of what completes:
// only after that is one armed again.
TEST_F(VerbsLostDeviceTest, AQueueThatCannotBeArmed) {
  expectTheEnd(
      [](FakeVerbs& fake) { fake.fail(FakeCall::kReqNotify, EIO, 1 << 30); },
      "completion queue cannot be armed", Traffic::kMessages);
}

TEST_F(VerbsLostDeviceTest, AQueueThatCannotBePolled) {
  expectTheEnd(
      [](FakeVerbs& fake) { fake.fail(FakeCall::kPollCq, EIO, 1 << 30); },
      "completion queue cannot be polled");
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
