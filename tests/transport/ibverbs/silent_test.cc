// A queue pair that says nothing any more: neither that what it sent has
// arrived, nor that it has not. Soft-RoCE has such ones after its port was set
// down and up again.
#include <gmock/gmock.h>

#include <barrier>
#include <string>

#include "tests/transport/contract/contract.h"
#include "tests/transport/ibverbs/fake_devices.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using testing::HasSubstr;

constexpr size_t kSize = 100000;

class VerbsSilentTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(mistakesOfFakeVerbs(), ""); }

  // A message of each rank is on its way while the port is down for a moment;
  // then the device goes on, or does not.
  void flap(bool goesOn) {
    FakeDevices devices = asynchronousDevices(5);
    devices.attr.timeout = 14;
    devices.attr.retryCount = 1;  // 67 ms, twice: until it is known
    std::barrier<> together(2);
    spawn(Mode::kThreads, fakeVerbsDevices(devices), 2,
          [&](const ContextPtr& context) {
            const int peer = 1 - context->rank;
            Message in(context, kSize);
            Message out(context, pattern(3, kSize));
            in.buffer->recv(peer, 1);
            meet(context);  // behind the adverts
            together.arrive_and_wait();
            if (context->rank == 0) {
              fakeVerbs().pause();
            }
            together.arrive_and_wait();
            out.buffer->send(peer, 1);
            together.arrive_and_wait();
            if (context->rank == 0) {
              fakeVerbs().raise(IBV_EVENT_PORT_ERR);
              fakeVerbs().raise(IBV_EVENT_PORT_ACTIVE);
              if (goesOn) {
                fakeVerbs().resume();
              }
            }
            const std::string why = complaintOf(in, out);
            if (goesOn) {
              EXPECT_EQ(why, "");
              meet(context);
            } else {
              EXPECT_THAT(why, HasSubstr("silent since the port came back"));
              EXPECT_THAT(why, HasSubstr("rank " + std::to_string(peer)));
            }
            together.arrive_and_wait();
            if (!goesOn && context->rank == 0) {
              fakeVerbs().resume();
            }
          });
  }

 private:
  static std::string complaintOf(Message& in, Message& out) {
    try {
      EXPECT_TRUE(in.buffer->waitRecv());
      EXPECT_TRUE(out.buffer->waitSend());
      EXPECT_TRUE(in.holds(3));
    } catch (const TimeoutException& e) {
      ADD_FAILURE() << e.what();
    } catch (const IoException& e) {
      return e.what();
    }
    return "";
  }
};

TEST_F(VerbsSilentTest, OneThatStaysSilentAfterItsPortCameBackHasFailed) {
  flap(false);
}

TEST_F(VerbsSilentTest, OneThatGoesOnHasNot) { flap(true); }

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
