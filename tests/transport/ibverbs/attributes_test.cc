// The limits among the attributes: what is refused, and what each decides.
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fake_verbs/fake_verbs.h"
#include "transport/ibverbs/endpoint.h"
#include "transport/ibverbs/poller.h"
#include "transport/ibverbs/side_channel.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {
namespace {

using namespace std::chrono_literals;  // NOLINT
using testing::HasSubstr;

class VerbsAttributesTest : public testing::Test {
 protected:
  test::FakeVerbs fake_;
  attr attr_;
};

TEST_F(VerbsAttributesTest, WhatIsOutOfRangeIsNamedWithItsValueAndTheRange) {
  using Set = std::function<void(attr&)>;
  const std::vector<std::pair<Set, const char*>> cases = {
      {[](attr& a) { a.readsAtATime = -1; }, "readsAtATime = -1 is not"},
      {[](attr& a) { a.readsAtATime = 256; }, "between 0 and 255"},
      {[](attr& a) { a.maxMessageBytes = 4095; }, "maxMessageBytes = 4095 is"},
      {[](attr& a) { a.maxMessageBytes = (size_t{1} << 31) + 1; },
       "between 4096 and 2147483648"},
      {[](attr& a) { a.creditBytes = 1023; }, "creditBytes = 1023 is not"},
      {[](attr& a) { a.creditBytes = SIZE_MAX; }, "1024 and 1099511627776"},
      {[](attr& a) { a.callBytes = SIZE_MAX; }, "callBytes = 1844674407370955"},
      {[](attr& a) { a.eagerMemoryBytes = 65535; }, "eagerMemoryBytes = 65535"},
      {[](attr& a) { a.eagerMemoryBytes = SIZE_MAX; }, "65536 and 1099511627"},
      {[](attr& a) { a.completionQueue = 0; }, "completionQueue = 0 is not"},
      {[](attr& a) { a.completionQueue = 1 << 23; }, "between 1 and 4194304"},
      {[](attr& a) { a.portDownTime = -1ms; }, "portDownTime = -1 ms is not"},
      {[](attr& a) { a.portDownTime = 2h; }, "between 0 and 3600000 ms"},
      {[](attr& a) { a.gidLostTime = -1ms; }, "gidLostTime = -1 ms is not"},
      {[](attr& a) { a.gidLostTime = 2h; }, "between 0 and 3600000 ms"},
      {[](attr& a) { a.hostTimeout = 999ms; }, "hostTimeout = 999 ms is not"},
      {[](attr& a) { a.hostTimeout = 2h; }, "between 1000 and 3600000 ms"},
      {[](attr& a) { a.reasonTime = -1ms; }, "reasonTime = -1 ms is not"},
      {[](attr& a) { a.reasonTime = 2min; }, "between 0 and 60000 ms"}};
  for (const auto& [set, text] : cases) {
    attr bad;
    set(bad);
    try {
      Adapter{bad};
      ADD_FAILURE() << text;
    } catch (const InvalidOperationException& e) {
      EXPECT_THAT(e.what(), HasSubstr(text));
    }
  }
}

TEST_F(VerbsAttributesTest, TheEndsOfTheRangesAreTaken) {
  attr_.maxMessageBytes = 4096;
  attr_.creditBytes = 1024;
  attr_.eagerMemoryBytes = 65536;
  attr_.callBytes = 0;
  attr_.completionQueue = 1;
  attr_.portDownTime = attr_.gidLostTime = attr_.reasonTime = 0ms;
  attr_.hostTimeout = 1s;
  VerbsPoller least(attr_);
  EXPECT_NO_THROW(Endpoint(least, shapeFor(least.adapter(), 1000)));
  attr_.readsAtATime = 255;
  attr_.maxMessageBytes = size_t{1} << 31;
  attr_.creditBytes = attr_.eagerMemoryBytes = size_t{1} << 40;
  attr_.callBytes = size_t{1} << 40;
  attr_.completionQueue = 1 << 22;
  attr_.portDownTime = attr_.gidLostTime = attr_.hostTimeout = 1h;
  attr_.reasonTime = 1min;
  VerbsPoller most(attr_);
  EXPECT_NO_THROW(Endpoint(most, shapeFor(most.adapter(), 1)));
}

TEST_F(VerbsAttributesTest, AQueuePairHasWhatTheySay) {
  attr_.readsAtATime = 3;
  attr_.maxMessageBytes = 100000;
  attr_.creditBytes = 80000;
  attr_.completionQueue = 2000;
  VerbsPoller poller(attr_);
  const Endpoint endpoint(poller, shapeFor(poller.adapter(), 1));
  const QpAddress told = endpoint.address();
  EXPECT_EQ(told.readsAtATime, 3);
  EXPECT_EQ(told.maxMessage, 100000u);
  EXPECT_EQ(told.creditBytes, 80000u);
  EXPECT_EQ(endpoint.cq()->cqe, 2000);
}

TEST_F(VerbsAttributesTest, PeersShareTheEagerMemoryOfTheirContext) {
  attr_.eagerMemoryBytes = size_t{1} << 20;
  const VerbsPoller poller(attr_);
  const auto share = [&](int peers) {
    return shapeFor(poller.adapter(), peers).caps.creditBytes;
  };
  EXPECT_EQ(share(1), size_t{1} << 20);
  EXPECT_EQ(share(4), size_t{1} << 18);
  EXPECT_EQ(shapeFor(poller.adapter(), 1 << 20).credits, 8u);
}

// Who sleeps is woken then, and not at the next of some looks.
TEST_F(VerbsAttributesTest, APortIsDownForNoLongerThanItsTime) {
  attr_.portDownTime = 50ms;
  VerbsPoller poller(attr_);
  EXPECT_EQ(poller.nextTimer(), std::chrono::milliseconds::max());
  fake_.raise(IBV_EVENT_PORT_ERR);
  while (fake_.pendingEvents() > 0) {
    poller.poll();
  }
  EXPECT_LE(poller.nextTimer(), 50ms);
}

TEST_F(VerbsAttributesTest, TheSideChannelMissesAHostAfterItsTime) {
  base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM, 0));
  const int fd = socket.get();
  const SideChannel side(std::move(socket), 2500ms);
  const auto option = [fd](int name) {
    int value = 0;
    socklen_t length = sizeof(value);
    EXPECT_EQ(::getsockopt(fd, IPPROTO_TCP, name, &value, &length), 0);
    return value;
  };
  EXPECT_EQ(option(TCP_USER_TIMEOUT), 2500);
  // One second until the first of them, and one for each but the last.
  EXPECT_EQ(option(TCP_KEEPIDLE) + option(TCP_KEEPCNT) * option(TCP_KEEPINTVL),
            2);
}

}  // namespace
}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
