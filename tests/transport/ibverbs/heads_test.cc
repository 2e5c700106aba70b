// Heads of frames: when they travel, and what the other end takes them for.
#include <gmock/gmock.h>

#include <array>
#include <string>
#include <vector>

#include "tests/transport/ibverbs/link_fixture.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {
namespace {

using base::FrameHeader;
using testing::HasSubstr;

// Longer than what is inlined.
constexpr uint32_t kBytes = 1000;

FrameHeader someMessage() {
  FrameHeader h;
  h.type = base::FrameType::kData;
  h.flags = base::kFirst | base::kLast;
  h.payloadBytes = kBytes;
  h.seen = UINT32_MAX - 1;
  h.slot = 77;
  h.number = 12;
  h.bytes = kBytes;
  h.credits = 1024;
  h.check = internal::withSequence(0x123456789abcdef0, 4094);
  return h;
}

class VerbsHeadsTest : public VerbsLinkTest {
 protected:
  VerbsHeadsTest() { open(); }

  // Sends it and checks that all of it has arrived; the bytes that travelled.
  uint64_t travels(FrameHeader h) {
    std::vector<char> payload(h.payloadBytes);
    for (char& c : payload) {
      c = static_cast<char>(++byte_);
    }
    fake_.pause();
    peerSends(h, payload.data());
    const uint64_t bytes = peer_->sends().bytesOnTheirWay();
    fake_.resume();
    poller_.poll();
    EXPECT_TRUE(peer_->sends().completed(peer_->sends().oldest()));
    handler_.last.linkCredits = 0;
    std::array<char, FrameHeader::kBytes> sent{};
    std::array<char, FrameHeader::kBytes> arrived{};
    base::encode(h, sent.data());
    base::encode(handler_.last, arrived.data());
    EXPECT_EQ(arrived, sent);
    EXPECT_EQ(std::string(handler_.payload.data(), payload.size()),
              std::string(payload.data(), payload.size()));
    return bytes;
  }

  int byte_ = 0;
};

TEST_F(VerbsHeadsTest, AMessageOneStepFromTheOneBeforeHasNone) {
  FrameHeader h = someMessage();
  EXPECT_EQ(travels(h), FrameHeader::kBytes + kBytes);
  for (int i = 0; i < 3; i++) {  // numbers of operations begin again at 1
    h.number++;
    h.seen++;
    h.check = internal::withSequence(
        h.check, internal::sequenceAfter(internal::sequenceOf(h.check)));
    EXPECT_EQ(travels(h), kBytes) << i;
  }
  h.number++;
  h.seen += 255;
  h.payloadBytes = 999;
  h.bytes = 999;
  EXPECT_EQ(travels(h), 999u);
}

TEST_F(VerbsHeadsTest, AnyOtherMessageHasOne) {
  const std::vector<void (*)(FrameHeader&)> others = {
      [](FrameHeader& h) { h.number--; },
      [](FrameHeader& h) { h.number++; },
      [](FrameHeader& h) { h.slot++; },
      [](FrameHeader& h) { h.seen += 256; },
      [](FrameHeader& h) { h.seen--; },
      [](FrameHeader& h) { h.credits++; },
      [](FrameHeader& h) { h.check++; },
      [](FrameHeader& h) { h.check = internal::withSequence(h.check, 1); },
      [](FrameHeader& h) { h.flags = base::kFirst; },
  };
  FrameHeader h = someMessage();
  travels(h);
  for (size_t i = 0; i < others.size(); i++) {
    h.number++;
    EXPECT_EQ(travels(h), kBytes) << i;
    FrameHeader other = h;
    other.number++;
    others[i](other);
    EXPECT_EQ(travels(other), FrameHeader::kBytes + kBytes) << i;
    if (base::fitsShortHead(other)) {  // from now on this is the one before
      other.number++;
      EXPECT_EQ(travels(other), kBytes) << i;
      travels(h);
    }
  }
}

// Neither end remembers those.
TEST_F(VerbsHeadsTest, MessagesWithAShortHeadAreNotCounted) {
  FrameHeader h = someMessage();
  travels(h);
  FrameHeader inlined = h;
  inlined.payloadBytes = 4;
  inlined.bytes = 4;
  inlined.number = 500;
  EXPECT_EQ(travels(inlined), base::kShortHeadBytes + 4);
  h.number++;
  EXPECT_EQ(travels(h), kBytes);
}

// Which fits the work request, while a head with it does not: it takes a slot.
TEST_F(VerbsHeadsTest, APayloadThatCanBeInlinedHasAHead) {
  const auto inlined = static_cast<uint32_t>(attr().inlineBytes);
  FrameHeader h = someMessage();
  travels(h);
  for (const uint32_t bytes : {inlined - 31, inlined}) {
    h.number++;
    h.bytes = h.payloadBytes = bytes;
    EXPECT_EQ(travels(h), FrameHeader::kBytes + bytes);
  }
  h.number++;
  h.bytes = h.payloadBytes = inlined + 1;
  EXPECT_EQ(travels(h), inlined + 1);
}

// As if it had followed a message whose head is all zeros.
TEST_F(VerbsHeadsTest, TheFirstMessageMayHaveNone) {
  FrameHeader h;
  h.type = base::FrameType::kData;
  h.flags = base::kFirst | base::kLast;
  h.number = 1;
  h.bytes = h.payloadBytes = kBytes;
  EXPECT_EQ(travels(h), kBytes);
}

TEST_F(VerbsHeadsTest, TheLinksCreditsTravelWithoutAHead) {
  const std::vector<char> payload(kBytes, 'x');
  const uint32_t all = peer_->shape().credits;
  FrameHeader h = someMessage();
  travels(h);
  int token = 0;
  for (uint32_t i = 0; i < all; i++) {
    EXPECT_TRUE(link_->send(h, payload.data(), &token)) << i;
    poller_.poll();
  }
  EXPECT_FALSE(link_->send(h, payload.data(), &token));
  for (uint32_t slot = 0; slot < all; slot++) {
    (void)peer_->receives().consumed(slot);
  }
  h.number++;
  EXPECT_EQ(travels(h), kBytes);
  EXPECT_TRUE(link_->flushed());
}

TEST_F(VerbsHeadsTest, MoreCreditsThanThereAreEndTheLink) {
  fake_.deliverImmediate(fake_.queuePairs().back(), kHeadlessImmediate + 1,
                         IBV_WC_RECV);
  poller_.poll();
  ASSERT_FALSE(handler_.heard.empty());
  EXPECT_THAT(handler_.heard.back(), HasSubstr("more credits"));
}

// One that waits for credit is filled when it leaves, behind what left before.
TEST_F(VerbsHeadsTest, MessagesThatWaitHaveThemLeftOutInTheOrderTheyLeave) {
  FrameHeader h = someMessage();
  travels(h);
  const std::vector<char> payload(kBytes, 'x');
  const uint32_t credits = peer_->shape().credits - 1;
  int waits = 0;
  fake_.pause();
  for (uint32_t i = 0; i < credits + 2; i++) {
    h.number++;
    waits += peer_->sends().send(h, payload.data(), &waits) ? 0 : 1;
  }
  EXPECT_GE(waits, 2);
  fake_.resume();
  for (int i = 0; i < 1000 && !peer_->sends().empty(); i++) {
    poller_.poll();
    if (peer_->sends().busy()) {
      EXPECT_TRUE(peer_->sends().completed(peer_->sends().oldest()));
    } else {
      ASSERT_TRUE(peer_->sends().addCredits(1));
    }
    peer_->sends().flush();
  }
  poller_.poll();
  EXPECT_EQ(handler_.last.number, h.number);
  EXPECT_EQ(handler_.heard.back(), "frame");
}

TEST_F(VerbsHeadsTest, ADeltaOfMoreThanThereIsIsRefused) {
  for (int bit = 25; bit < 30; bit++) {
    SCOPED_TRACE(bit);
    fake_.deliverImmediate(fake_.queuePairs().back(),
                           kHeadlessImmediate | uint32_t{1} << bit,
                           IBV_WC_RECV);
    poller_.poll();
    ASSERT_FALSE(handler_.heard.empty());
    EXPECT_THAT(handler_.heard.back(), HasSubstr("which means nothing"));
    connect();
    open();
  }
}

}  // namespace
}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
