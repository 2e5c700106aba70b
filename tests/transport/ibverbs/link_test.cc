// A link by itself, without a pair: what it tells its handler.
#include "transport/ibverbs/link.h"

#include <gmock/gmock.h>
#include <netinet/tcp.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

#include "tests/transport/ibverbs/link_fixture.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(VerbsLinkTest, ThePeersReasonIsHeardBehindItsReadyByte) {
  theirs_->sayReady();
  base::FrameHeader abort;
  abort.type = base::FrameType::kAbort;
  theirs_->sayLast(abort, nullptr);
  awaitReadable(socket_);
  link_->fail("the queue pair failed");
  EXPECT_THAT(handler_.heard,
              ElementsAre("abort", HasSubstr("the queue pair failed")));
}

TEST_F(VerbsLinkTest, AFarewellThatCannotBePostedIsNoticed) {
  theirs_->sayReady();
  awaitReadable(socket_);
  EXPECT_TRUE(link_->onSocket());
  poller_.poll();
  fake_.fail(test::FakeCall::kPostSend, ENOMEM);
  link_->finish();
  poller_.poll();
  EXPECT_THAT(handler_.heard, ElementsAre(HasSubstr("could not be posted")));
}

// Told as the poller tells it, which settles what was touched.
TEST_F(VerbsLinkTest, ACompletionForWhichNothingWaitsIsNothingToSettle) {
  constexpr auto kUntouched = std::chrono::milliseconds::max();
  const auto complete = [this](uint32_t number) {
    link_->onCompletion(ibv_wc{}, false, number);
  };
  open();
  poller_.poll();
  base::FrameHeader header;
  header.type = base::FrameType::kCredit;
  EXPECT_TRUE(link_->send(header, nullptr, nullptr));
  complete(SendQueue::kFirstSequence);
  EXPECT_EQ(poller_.nextTimer(), kUntouched);
  int token = 0;
  write(&token);
  complete(SendQueue::kFirstSequence + 1);
  EXPECT_NE(poller_.nextTimer(), kUntouched);
}

// As a pair's does that fails in between. Nobody falls asleep before.
TEST_F(VerbsLinkTest, AHeldWriteThatNoFrameFollowsLeavesAtThePoll) {
  open();
  poller_.poll();
  const uint64_t before = fake_.counts().doorbells;
  link_->hold();
  int token = 0;
  write(&token);
  EXPECT_EQ(fake_.counts().doorbells, before);
  EXPECT_TRUE(poller_.arm());
  poller_.poll();
  EXPECT_EQ(fake_.counts().doorbells, before + 1);
  poller_.poll();
  EXPECT_THAT(handler_.completed, ElementsAre(&token));
}

// For want of receives, all of which are taken.
TEST_F(VerbsLinkTest, AHeldWriteLeavesThoughTheFrameBehindItHasToWait) {
  open();
  base::FrameHeader header;
  header.type = base::FrameType::kCredit;
  for (int i = 0; i < attr().receives; i++) {
    EXPECT_TRUE(link_->send(header, nullptr, nullptr));
  }
  EXPECT_TRUE(link_->flushed());
  const uint64_t before = fake_.counts().doorbells;
  link_->hold();
  int token = 0;
  write(&token);
  EXPECT_TRUE(link_->send(header, nullptr, nullptr));
  EXPECT_FALSE(link_->flushed());
  EXPECT_EQ(fake_.counts().doorbells, before + 1);
}

// Numbers of requests begin again at 0 between the first one and the last.
TEST_F(VerbsLinkTest, WhatIsCompleteIsToldByItsNumber) {
  open();
  std::array<int, 300> tokens{};
  for (int& token : tokens) {
    write(&token);
    poller_.poll();
    EXPECT_THAT(handler_.completed, ElementsAre(&token));
    handler_.completed.clear();
  }
  EXPECT_THAT(handler_.heard, ElementsAre());
}

// One that was complete before, and one that nobody has posted.
TEST_F(VerbsLinkTest, ACompletionOfNothingThatIsOnItsWayFreesNothing) {
  for (const uint32_t number :
       {SendQueue::kFirstSequence, SendQueue::kFirstSequence + 2}) {
    SCOPED_TRACE(number);
    open();
    int before = 0;
    write(&before);
    poller_.poll();
    EXPECT_THAT(handler_.completed, ElementsAre(&before));
    fake_.pause();
    postWrite(qp_, tag_ + number);
    int behind = 0;
    write(&behind);
    fake_.resume();
    poller_.poll();
    EXPECT_THAT(handler_.completed, ElementsAre(&before));
    EXPECT_THAT(handler_.heard, ElementsAre(HasSubstr("not on its way")));
    handler_.completed.clear();
    connect();
  }
}

// It waits for the end of what is on its way to the peer.
TEST_F(VerbsLinkTest, AFarewellThatIsHeldBackIsHeardBeforeALoss) {
  theirs_->sayReady();
  awaitReadable(socket_);
  EXPECT_TRUE(link_->onSocket());
  peerSends(base::FrameType::kBye);
  fake_.pause();
  const std::array<char, 8> bytes{};
  int token = 0;
  EXPECT_FALSE(link_->write(bytes.data(), bytes.size(), nullptr, {},
                            base::kNoImmediate, &token));
  poller_.poll();
  EXPECT_TRUE(handler_.heard.empty());
  link_->fail("the queue pair failed");
  EXPECT_THAT(handler_.heard,
              ElementsAre("bye", HasSubstr("the queue pair failed")));
}

// More than one round of polling takes lies before it.
TEST_F(VerbsLinkTest, TheFirstFailureIsReadBeforeASuspicionIsBelieved) {
  for (int i = 0; i < 16; i++) {
    peerSends(base::FrameType::kCredit);
  }
  fake_.failReceive(fake_.queuePairs().back(), IBV_WC_LOC_PROT_ERR);
  link_->suspect("something else");
  // As a process that was stopped: the time for the reason is over.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  for (int i = 0; i < 3; i++) {
    poller_.poll();
  }
  ASSERT_EQ(handler_.heard.size(), 17u);
  EXPECT_THAT(handler_.heard.back(), HasSubstr("an RDMA receive failed"));
}

// As where other links of the device are busy.
TEST_F(VerbsLinkTest, AClosedConnectionIsNoticedWhileCompletionsKeepComing) {
  theirs_.reset();
  awaitReadable(socket_);
  EXPECT_TRUE(link_->onSocket());
  peerSends(base::FrameType::kCredit);
  poller_.poll();
  EXPECT_THAT(handler_.heard, ElementsAre("frame", HasSubstr("127.0.0.1")));
}

// As where they come faster than they are handled.
TEST_F(VerbsLinkTest, AClosedConnectionIsNoticedThoughTheQueueStaysFull) {
  theirs_.reset();
  awaitReadable(socket_);
  EXPECT_TRUE(link_->onSocket());
  peerSends(base::FrameType::kCredit);
  const int entries = peer_->qp()->send_cq->cqe;
  peerWrites(kPolled);
  for (int taken = 0; taken <= entries; taken += kPolled) {
    peerWrites(kPolled);
    poller_.poll();
  }
  EXPECT_THAT(handler_.heard, ElementsAre("frame", HasSubstr("127.0.0.1")));
}

TEST_F(VerbsLinkTest, TheSideChannelSoonMissesAHostThatIsGone) {
  unsigned limit = 0;  // milliseconds that a byte may go unanswered
  socklen_t length = sizeof(limit);
  ASSERT_EQ(
      ::getsockopt(socket_, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, &length), 0);
  EXPECT_GT(limit, 0u);
  EXPECT_LT(limit, 5000u);
}

// Its queue pair is gone, and no news is expected: looking is a system call.
TEST_F(VerbsLinkTest, WhatFailsBehindAFarewellIsNobodysConcern) {
  for (const bool late : {false, true}) {
    SCOPED_TRACE(late);
    open();
    if (late) {
      raiseOnLink();
    }
    peerSends(base::FrameType::kCredit);
    peer_->sends().sendEnd();
    poller_.poll();
    if (!late) {
      raiseOnLink();
    }
    poller_.poll();
    EXPECT_THAT(fake_.misuse(), ElementsAre());
    const uint64_t before = poller_.totals().systemCalls;
    for (int i = 0; i < 1000; i++) {
      poller_.poll();
    }
    EXPECT_LE(poller_.totals().systemCalls - before, 3u);
    EXPECT_TRUE(link_->finished());
    EXPECT_THAT(handler_.heard, ElementsAre("frame", HasSubstr("was closed")));
    connect();
  }
}

// Both ends must agree, or packets of the one are too long for the other.
TEST_F(VerbsLinkTest, AQueuePairKeepsTheMtuThatItsPeerWasTold) {
  const auto changeTo = [this](ibv_mtu mtu) {
    test::FakePort port;
    port.mtu = mtu;
    fake_.replacePort(1, port);
    poller_.adapter().refresh();
  };
  const Shape shape = shapeFor(poller_.adapter(), 1);
  changeTo(IBV_MTU_1024);
  Endpoint before(poller_, shape);
  const QpAddress told = before.address();
  changeTo(IBV_MTU_4096);
  Endpoint after(poller_, shape);
  before.connect(after.address());
  after.connect(told);
  EXPECT_EQ(fake_.mtu(before.qp()->qp_num), IBV_MTU_1024);
  EXPECT_EQ(fake_.mtu(after.qp()->qp_num), IBV_MTU_1024);
}

TEST_F(VerbsLinkTest, RoceOfAnotherVersionIsRefusedByName) {
  Endpoint endpoint(poller_, shapeFor(poller_.adapter(), 1));
  QpAddress other = peer_->address();
  EXPECT_EQ(other.gidType, GidType::kRoce2);
  other.gidType = GidType::kRoce1;
  try {
    endpoint.connect(other);
    FAIL();
  } catch (const IoException& e) {
    EXPECT_THAT(e.what(), testing::ContainsRegex("RoCE v2, .* RoCE v1"));
  }
}

// The peer's writes are no more to be let in than if it were gone.
TEST_F(VerbsLinkTest, AQueuePairThatIsNotDestroyedIsInError) {
  const uint32_t qpn = fake_.queuePairs().back();
  fake_.fail(test::FakeCall::kDestroyQp, EIO);
  link_->abandon();
  EXPECT_EQ(fake_.state(qpn), IBV_QPS_ERR);
  EXPECT_NO_THROW(Endpoint(poller_, shapeFor(poller_.adapter(), 1)));
}

TEST_F(VerbsLinkTest, ADeviceThatEndsNoQueuePairIsGivenUp) {
  fake_.fail(test::FakeCall::kDestroyQp, EIO);
  fake_.fail(test::FakeCall::kModifyQp, EIO);
  link_->abandon();
  poller_.poll();
  try {
    Endpoint(poller_, shapeFor(poller_.adapter(), 1));
    FAIL();
  } catch (const IoException& e) {
    EXPECT_THAT(e.what(), HasSubstr("does not end a queue pair"));
  }
}

// All are polled every time.
TEST(CompletionQueuesTest, ThoseThatCannotGrowAreFewForManyPeers) {
  test::FakeVerbs fake;
  VerbsPoller poller(loopback());
  fake.fail(test::FakeCall::kResizeCq, ENOSYS, 9999);
  CompletionQueues queues(poller.adapter());
  fake.fail(test::FakeCall::kCreateCq, ENOMEM, 1, 1);  // a smaller one will do
  for (int peer = 0; peer < 1000; peer++) {
    EXPECT_NE(queues.reserve(200), nullptr);
  }
  EXPECT_THAT(fake.alive(), testing::ContainsRegex("cq 1?[0-9](,|$)"));
}

}  // namespace
}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
