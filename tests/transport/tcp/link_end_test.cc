// How TCP links end: in order, with a last word, by a failure.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>

#include "tests/transport/tcp/harness.h"
#include "transport/tcp/link.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using transport::base::FrameHeader;

TEST(TcpLink, TellsAnEndBetweenFramesFromOneWithin) {
  const std::string stream =
      wireBytes(dataFrame(70, 1), text(1, 70)) + wireBytes(dataFrame(0, 2), "");
  for (size_t cut = 0; cut <= stream.size(); cut++) {
    WithBarePeer t;
    writeAll(t.peer.get(), stream.substr(0, cut));
    t.peer.reset();
    ASSERT_TRUE(t.pollUntil([&] { return !t.end.recorder.losses.empty(); }));
    const bool whole = cut == 0 || cut == 134 || cut == stream.size();
    EXPECT_EQ(whole, t.end.recorder.losses[0].second) << cut;
    EXPECT_EQ(cut == stream.size() ? 2u
              : cut >= 134         ? 1u
                                   : 0u,
              t.end.recorder.frames.size());
    for (int i = 0; i < 10; i++) {
      t.end.poller().poll();
    }
    EXPECT_EQ(1u, t.end.recorder.losses.size()) << "told twice";
  }
}

TEST(TcpLink, FinishDeliversWhatThePeerStillSends) {
  WithBarePeer t;
  (void)t.end.link->send(bye(), nullptr, nullptr);
  t.end.link->finish();
  EXPECT_EQ(wireBytes(bye(), ""), readAll(t.peer.get(), &t.end.poller()));
  writeAll(t.peer.get(), wireBytes(dataFrame(3), "abc"));
  ASSERT_TRUE(t.pollUntil([&] { return t.end.recorder.frames.size() == 1; }));
  EXPECT_FALSE(t.end.link->finished());
  t.peer.reset();
  ASSERT_TRUE(t.pollUntil([&] { return t.end.link->finished(); }));
  ASSERT_EQ(1u, t.end.recorder.losses.size());
  EXPECT_TRUE(t.end.recorder.losses[0].second);
}

// Whether or not this side has said its last word.
void leaveAfterThePeer(bool finished) {
  WithBarePeer t;
  const std::string payload = text(1, 8 << 20);
  std::string expected;
  for (size_t at = 0; at < payload.size(); at += 1 << 20) {
    (void)t.end.send(payload.data() + at, 1 << 20, &t);
    expected += wireBytes(dataFrame(1 << 20), payload.substr(at, 1 << 20));
  }
  if (finished) {
    t.end.link->finish();
  }
  ::shutdown(t.peer.get(), SHUT_WR);
  EXPECT_TRUE(expected == readAll(t.peer.get(), &t.end.poller()));
  ASSERT_TRUE(t.pollUntil([&] { return t.end.link->finished(); }));
  EXPECT_TRUE(t.end.recorder.losses.at(0).second);
  EXPECT_FALSE(t.end.recorder.completed.empty());
}

TEST(TcpLink, WhatIsQueuedStillLeavesAfterThePeerHasEnded) {
  leaveAfterThePeer(true);
  leaveAfterThePeer(false);
}

// One that dies does not read to our end.
TEST(TcpLink, WhatIsQueuedForAPeerThatIsGoneIsLost) {
  WithBarePeer t;
  const std::string payload = text(1, 1 << 20);
  for (int i = 0; i < 8; i++) {
    (void)t.end.send(payload.data(), payload.size(), &t);
  }
  ::shutdown(t.peer.get(), SHUT_WR);
  for (int i = 0; i < 10; i++) {
    t.end.poller().poll();
  }
  EXPECT_TRUE(t.end.recorder.losses.empty());
  t.peer.reset();
  ASSERT_TRUE(t.pollUntil([&] { return !t.end.recorder.losses.empty(); }));
  EXPECT_FALSE(t.end.recorder.losses[0].second);
}

// The connection lives on, and the peer would wait for the rest for ever.
TEST(TcpLink, MemoryThatCannotBeReadEndsTheLink) {
  constexpr size_t kPage = 4096;
  void* const page =
      ::mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, page);
  for (const bool queued : {false, true}) {
    WithLinks t;
    const std::string before(64 << 10, 'x');
    for (int i = 0; i < (queued ? 128 : 1); i++) {
      (void)t.a.send(before.data(), before.size(), &t);
    }
    (void)t.a.send(static_cast<char*>(page), kPage, &t);
    ASSERT_TRUE(t.pollUntil([&] { return !t.a.recorder.losses.empty(); }));
    EXPECT_FALSE(t.a.recorder.losses[0].second);
    EXPECT_NE(std::string::npos,
              t.a.recorder.losses[0].first.find("Bad address"))
        << t.a.recorder.losses[0].first;
    ASSERT_TRUE(t.pollUntil([&] { return !t.b.recorder.losses.empty(); }));
  }
  ::munmap(page, kPage);
}

TEST(TcpLink, TheLastWordFollowsWhatHasBegun) {
  WithBarePeer t;
  std::string payload = text(1, 8 << 20);
  for (size_t at = 0; at < payload.size(); at += 1 << 20) {
    (void)t.end.send(payload.data() + at, 1 << 20, &t, at);
  }
  while (t.end.poller().poll()) {
  }
  const std::string original = payload;
  t.end.link->finishWith(bye(), nullptr);
  std::fill(payload.begin(), payload.end(), '!');  // ours again
  t.end.recorder.completed.clear();
  const std::string stream = readAll(t.peer.get(), &t.end.poller());
  const size_t frame = FrameHeader::kBytes + (1 << 20);
  ASSERT_EQ(FrameHeader::kBytes, stream.size() % frame);
  ASSERT_LT(stream.size(), 8 * frame) << "nothing was forgotten";
  for (size_t i = 0; i < stream.size() / frame; i++) {
    EXPECT_TRUE(original.substr(i << 20, 1 << 20) ==
                stream.substr(i * frame + FrameHeader::kBytes, 1 << 20));
  }
  EXPECT_EQ(wireBytes(bye(), ""),
            stream.substr(stream.size() - FrameHeader::kBytes));
  t.peer.reset();
  ASSERT_TRUE(t.pollUntil([&] { return t.end.link->finished(); }));
  EXPECT_TRUE(t.end.recorder.losses.empty());
  EXPECT_TRUE(t.end.recorder.completed.empty());
}

TEST(TcpLink, AResetIsReportedAfterWhatCameBefore) {
  WithBarePeer t;
  writeAll(t.peer.get(), wireBytes(dataFrame(3), "abc"));
  const linger reset{1, 0};
  ::setsockopt(t.peer.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  t.peer.reset();
  (void)t.end.send("x", 1, &t);  // fails, and must not hide the frame
  (void)t.end.send("x", 1, &t);
  ASSERT_TRUE(t.pollUntil([&] { return !t.end.recorder.losses.empty(); }));
  EXPECT_EQ(1u, t.end.recorder.frames.size());
  EXPECT_FALSE(t.end.recorder.losses[0].second);
  EXPECT_NE(std::string::npos, t.end.recorder.losses[0].first.find("errno"));
}

TEST(TcpLink, TheHandlerMayDestroyTheLinkAnywhere) {
  for (const std::string where :
       {"onPayload", "onFrame", "onComplete", "onLost"}) {
    WithBarePeer t;
    t.end.recorder.hook = [&](const char* what) {
      if (where == what) {
        t.end.link.reset();
      }
    };
    const std::string payload(1 << 20, 'x');
    for (int i = 0; i < 16 && t.end.link; i++) {
      (void)t.end.send(payload.data(), payload.size(), &t);
    }
    writeAll(t.peer.get(),
             wireBytes(dataFrame(3), "abc") + wireBytes(dataFrame(3), "def"));
    if (where == "onComplete") {
      std::vector<char> sink(1 << 20);
      ASSERT_TRUE(t.pollUntil([&] {
        (void)::recv(t.peer.get(), sink.data(), sink.size(), 0);
        return t.end.link == nullptr;
      }));
    }
    t.peer.reset();
    EXPECT_TRUE(t.pollUntil([&] { return t.end.link == nullptr; })) << where;
  }
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
