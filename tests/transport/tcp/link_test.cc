// The TCP link over real sockets.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <random>

#include "tests/support/bytes.h"
#include "tests/support/usage.h"
#include "tests/transport/tcp/harness.h"
#include "transport/tcp/link.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using transport::base::FrameHeader;
using transport::base::FrameType;
using transport::base::UniqueFd;

TEST(TcpLink, DeliversFramesOfEverySizeInOrder) {
  WithLinks links;
  std::vector<std::string> payloads;
  for (const size_t size :
       {0u, 1u, 63u, 64u, 65u, 1000u, 16319u, 16320u, 16321u, 65419u, 65420u,
        65536u, 131072u, 262144u, 1048575u, 1048576u, 3u}) {
    payloads.push_back(text(size, size));
  }
  size_t open = 0;
  for (size_t i = 0; i < payloads.size(); i++) {
    open +=
        links.a.send(payloads[i].data(), payloads[i].size(), &payloads[i], i)
            ? 0
            : 1;
  }
  auto& got = links.b.recorder.frames;
  ASSERT_TRUE(links.pollUntil([&] { return got.size() == payloads.size(); }));
  for (size_t i = 0; i < payloads.size(); i++) {
    EXPECT_EQ(i, got[i].header.number);
    EXPECT_TRUE(payloads[i] == got[i].payload) << payloads[i].size();
  }
  EXPECT_TRUE(links.pollUntil(
      [&] { return links.a.recorder.completed.size() == open; }));
}

TEST(TcpLink, DoesNotCareHowTheStreamIsCut) {
  const std::string stream = wireBytes(dataFrame(150, 1), text(1, 150)) +
                             wireBytes(dataFrame(0, 2), "") +
                             wireBytes(dataFrame(3, 3), "abc");
  WithBarePeer t;
  auto& got = t.end.recorder.frames;
  for (size_t cut = 1; cut < stream.size(); cut++) {
    got.clear();
    writeAll(t.peer.get(), stream.substr(0, cut));
    ASSERT_TRUE(t.pollUntil([&] {
      return got.size() == (cut >= stream.size() - 67 ? 2u
                            : cut >= 214              ? 1u
                                                      : 0u);
    }));
    for (int i = 0; i < 3; i++) {
      t.end.poller().poll();
    }
    writeAll(t.peer.get(), stream.substr(cut));
    ASSERT_TRUE(t.pollUntil([&] { return got.size() == 3; })) << cut;
    EXPECT_EQ(text(1, 150), got[0].payload) << cut;
    EXPECT_EQ("", got[1].payload);
    EXPECT_EQ("abc", got[2].payload) << cut;
  }
}

TEST(TcpLink, RefusesWhatIsNotTheProtocol) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; i++) {
    WithBarePeer t;
    std::string garbage(64 + random() % 200, '\0');
    std::generate(garbage.begin(), garbage.end(),
                  [&] { return static_cast<char>(random()); });
    garbage[0] = static_cast<char>(11 + random() % 240);  // no such type
    writeAll(t.peer.get(), garbage);
    ASSERT_TRUE(t.pollUntil([&] { return !t.end.recorder.losses.empty(); }));
    EXPECT_FALSE(t.end.recorder.losses[0].second);
    EXPECT_NE(std::string::npos,
              t.end.recorder.losses[0].first.find("not our protocol"));
    EXPECT_TRUE(t.end.recorder.frames.empty());
  }
}

TEST(TcpLink, RefusesAFrameAboveTheLimit) {
  WithBarePeer t;
  const size_t tooLong = t.end.link->caps().maxFrameBytes + 1;
  writeAll(t.peer.get(), wireBytes(dataFrame(tooLong), ""));
  ASSERT_TRUE(t.pollUntil([&] { return !t.end.recorder.losses.empty(); }));
  EXPECT_NE(std::string::npos,
            t.end.recorder.losses[0].first.find(std::to_string(tooLong)));
}

TEST(TcpLink, StopsReadingWhenAPayloadIsRefused) {
  WithBarePeer t;
  t.end.recorder.refusePayload = true;
  int asked = 0;
  t.end.recorder.hook = [&](const char*) { asked++; };
  writeAll(t.peer.get(),
           wireBytes(dataFrame(5), "hello") + wireBytes(dataFrame(5), "again"));
  ASSERT_TRUE(t.pollUntil([&] { return asked == 1; }));
  t.peer.reset();
  for (int i = 0; i < 100; i++) {
    t.end.poller().poll();
  }
  EXPECT_EQ(1, asked);
  EXPECT_TRUE(t.end.recorder.losses.empty());
  pollfd wake{t.end.poller().wakeFd(), POLLIN, 0};
  EXPECT_FALSE(t.end.poller().arm());
  EXPECT_EQ(0, ::poll(&wake, 1, 0)) << "would spin";
}

TEST(TcpLink, ASmallFrameIsOneSystemCall) {
  WithLinks links;
  const std::string payload(1000, 'x');
  for (int i = 0; i < 100; i++) {
    const uint64_t before = links.a.systemCalls();
    ASSERT_TRUE(links.a.send(payload.data(), payload.size(), &links));
    EXPECT_EQ(1u, links.a.systemCalls() - before);
  }
  ASSERT_TRUE(
      links.pollUntil([&] { return links.b.recorder.frames.size() == 100; }));
}

// Of an executor that posts a row of segments.
TEST(TcpLink, FramesThatWaitForAnotherAreOneSystemCall) {
  WithLinks links;
  constexpr size_t kBytes = 20'000;
  std::array<std::string, 4> payloads;
  for (size_t i = 0; i < payloads.size(); i++) {
    payloads[i] = text(i, kBytes);
  }
  const auto send = [&](size_t i) {
    return links.a.send(payloads[i].data(), kBytes, &payloads[i], i);
  };
  const uint64_t before = links.a.systemCalls();
  for (size_t i = 0; i < 3; i++) {
    links.a.link->hold();
    EXPECT_FALSE(send(i));
  }
  EXPECT_EQ(0u, links.a.systemCalls() - before);
  EXPECT_FALSE(send(3));
  EXPECT_EQ(1u, links.a.systemCalls() - before);
  ASSERT_TRUE(links.pollUntil([&] {
    return links.b.recorder.frames.size() == 4 &&
           links.a.recorder.completed.size() == 4;
  }));
  for (size_t i = 0; i < payloads.size(); i++) {
    EXPECT_EQ(i, links.b.recorder.frames[i].header.number);
    EXPECT_EQ(payloads[i], links.b.recorder.frames[i].payload);
    EXPECT_EQ(&payloads[i], links.a.recorder.completed[i]);
  }
  // One that none follows leaves at a poll, and the next waits for nothing.
  links.a.link->hold();
  EXPECT_FALSE(send(0));
  ASSERT_TRUE(
      links.pollUntil([&] { return links.b.recorder.frames.size() == 5; }));
  EXPECT_TRUE(send(1));
}

TEST(TcpLink, BatchedFramesAreReadTogether) {
  WithBarePeer t;
  std::string stream;
  for (int i = 0; i < 50; i++) {
    stream += wireBytes(dataFrame(40), text(1, 40));
  }
  writeAll(t.peer.get(), stream);
  const uint64_t before = t.end.systemCalls();
  ASSERT_TRUE(t.pollUntil([&] { return t.end.recorder.frames.size() == 50; }));
  EXPECT_LE(t.end.systemCalls() - before, 3u);
}

TEST(TcpLink, APeerThatDoesNotReadStopsNobody) {
  WithBarePeer t;
  constexpr size_t kBytes = 1 << 20;
  std::vector<std::string> payloads;
  std::string expected;
  size_t open = 0;
  for (uint64_t i = 0; i < 48; i++) {
    payloads.push_back(text(i, kBytes));
    expected += wireBytes(dataFrame(kBytes, i), payloads.back());
  }
  for (uint64_t i = 0; i < 48; i++) {
    open += t.end.send(payloads[i].data(), kBytes, &payloads[i], i) ? 0 : 1;
  }
  for (int i = 0; i < 1000; i++) {
    t.end.poller().poll();
  }
  EXPECT_FALSE(t.end.link->flushed());
  EXPECT_LT(t.end.recorder.completed.size(), open);
  t.end.link->finish();
  EXPECT_TRUE(expected == readAll(t.peer.get(), &t.end.poller()));
  ASSERT_TRUE(
      t.pollUntil([&] { return t.end.recorder.completed.size() == open; }));
  std::sort(t.end.recorder.completed.begin(), t.end.recorder.completed.end());
  EXPECT_EQ(t.end.recorder.completed.end(),
            std::adjacent_find(t.end.recorder.completed.begin(),
                               t.end.recorder.completed.end()));
}

TEST(TcpLink, SleepingOnTheWakeDescriptorMissesNothing) {
  WithBarePeer t;
  const std::string payload(1 << 20, 'x');
  size_t open = 0;
  for (int i = 0; i < 16; i++) {
    open += t.end.send(payload.data(), payload.size(), &t) ? 0 : 1;
  }
  while (t.end.poller().poll()) {
  }
  EXPECT_FALSE(t.end.poller().arm());
  pollfd wake{t.end.poller().wakeFd(), POLLIN, 0};
  EXPECT_EQ(0, ::poll(&wake, 1, 0)) << "no room, nothing to read";
  std::vector<char> sink(1 << 20);
  size_t sunk = 0;
  while (sunk < 16 * (payload.size() + FrameHeader::kBytes)) {
    const ssize_t n = ::recv(t.peer.get(), sink.data(), sink.size(), 0);
    sunk += n > 0 ? static_cast<size_t>(n) : 0;
    if (n < 0 && !t.end.link->flushed()) {
      ASSERT_EQ(1, ::poll(&wake, 1, 10000)) << "slept through room";
      t.end.poller().poll();
      t.end.poller().arm();
    }
  }
  ASSERT_TRUE(
      t.pollUntil([&] { return t.end.recorder.completed.size() == open; }));
  t.end.poller().arm();
  EXPECT_EQ(0, ::poll(&wake, 1, 0)) << "would spin";
  writeAll(t.peer.get(), wireBytes(bye(), ""));
  EXPECT_EQ(1, ::poll(&wake, 1, 10000)) << "slept through a frame";
}

TEST(TcpLink, HundredThousandRandomFramesBothWays) {
  WithLinks links;
  std::mt19937_64 random(7);
  constexpr uint64_t kFrames = 100000;
  struct Side {
    LinkEnd* from;
    LinkEnd* to;
    uint64_t sent = 0;
    uint64_t received = 0;
    size_t bad = 0;
  };
  Side sides[2] = {{&links.a, &links.b}, {&links.b, &links.a}};
  const auto sizeOf = [](uint64_t i) {
    const uint64_t r = i * 0x9e3779b97f4a7c15u >> 40;
    return static_cast<size_t>(r % 100 < 99 ? r % 300 : r % 60000);
  };
  const std::vector<char> source = pattern(3, 1 << 17);
  for (Side& side : sides) {
    side.to->recorder.keepFrames = true;
    side.to->recorder.hook = [&side, &source, &sizeOf](const char* what) {
      if (std::string(what) != "onFrame") {
        return;
      }
      const Frame& frame = side.to->recorder.frames.back();
      const uint64_t i = side.received++;
      side.bad +=
          frame.header.number != i || frame.payload.size() != sizeOf(i) ||
          frame.payload.compare(0, std::string::npos, source.data() + i % 1000,
                                sizeOf(i)) != 0;
      side.to->recorder.frames.clear();
    };
  }
  const auto step = [&](Side& side) {
    for (uint64_t n = random() % 8; n > 0 && side.sent < kFrames; n--) {
      const uint64_t i = side.sent++;
      (void)side.from->send(source.data() + i % 1000, sizeOf(i), &side, i);
    }
  };
  while (sides[0].received < kFrames || sides[1].received < kFrames) {
    step(sides[0]);
    step(sides[1]);
    links.a.poller().poll();
    links.b.poller().poll();
    ASSERT_TRUE(links.a.recorder.losses.empty());
    ASSERT_TRUE(links.b.recorder.losses.empty());
  }
  EXPECT_EQ(0u, sides[0].bad);
  EXPECT_EQ(0u, sides[1].bad);
}

TEST(TcpLink, AllocatesNothingInSteadyState) {
  WithLinks links;
  links.a.recorder.keepFrames = links.b.recorder.keepFrames = false;
  links.a.recorder.completed.reserve(1 << 20);
  const std::vector<char> payload = pattern(1, 300000);
  uint64_t received = 0;
  links.b.recorder.hook = [&](const char* what) {
    received += what[2] == 'F' ? 1 : 0;
  };
  const auto round = [&] {
    const uint64_t target = received + 20;
    for (int i = 0; i < 20; i++) {
      const size_t bytes = i % 5 == 0 ? payload.size() : 200;
      (void)links.a.send(payload.data(), bytes, i % 5 == 0 ? &links : nullptr);
    }
    while (received < target) {
      links.a.poller().poll();
      links.b.poller().poll();
    }
  };
  for (int i = 0; i < 20; i++) {
    round();
  }
  const uint64_t before = allocations();
  for (int i = 0; i < 200; i++) {
    round();
  }
  EXPECT_EQ(0u, allocations() - before);
}

TEST(TcpLink, ManyLinksShareOnePoller) {
  transport::base::ProgressDomain domain;
  const auto lock = domain.lock();
  transport::tcp::TcpFactory factory(domain);
  std::vector<UniqueFd> peers;
  std::vector<std::unique_ptr<LinkEnd>> ends;
  for (int i = 0; i < 40; i++) {
    auto sockets = tcpPair();
    peers.push_back(std::move(sockets.first));
    ends.push_back(
        std::make_unique<LinkEnd>(factory, std::move(sockets.second)));
    ends.back()->link->expect(i % 3 == 0);
  }
  for (int round = 0; round < 20; round++) {
    for (size_t i = 0; i < ends.size(); i++) {
      if (ends[i] != nullptr) {
        writeAll(peers[i].get(), wireBytes(dataFrame(3), "abc"));
      }
    }
    ASSERT_TRUE(pollUntil({&factory.poller()}, [&] {
      return std::all_of(ends.begin(), ends.end(), [&](auto& end) {
        return end == nullptr ||
               end->recorder.frames.size() == size_t(round + 1);
      });
    })) << round;
    ends[round * 2].reset();  // the places are reused
  }
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
