#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <random>
#include <thread>

#include "tests/transport/shm/harness.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace transport::shm;  // NOLINT

void put(FrameWriter& writer, const transport::base::FrameHeader& header,
         const std::string& payload) {
  FrameProgress progress;
  bool ring = false;
  while (writer.step(header, payload.data(), progress, &ring) ==
         FrameWriter::Step::kMore) {
  }
}

TEST(ShmLinkTest, DeliversWhatCameBeforeTheEnd) {
  HalfLink half;
  FrameWriter peer(half.segment->outgoing(End::kTaker));
  put(peer, eager(1, 3), "one");
  put(peer, eager(2, 100), std::string(100, 't'));
  half.otherSocket.reset();  // the process has died
  half.poller.arm();
  half.poll();
  half.poll();
  half.poll();
  ASSERT_EQ(half.notes.payloads.size(), 2u);
  EXPECT_EQ(half.notes.payloads[0], "one");
  EXPECT_NE(half.notes.lost, "");
  EXPECT_TRUE(half.notes.ended);
  // It may only have closed it, and has no number here to ask for.
  EXPECT_FALSE(half.link->peerHasEnded());
}

// Somebody else still holds its end of the socket.
TEST(ShmLinkTest, TheEndOfItsProcessIsThatOfThePeer) {
  const pid_t process = ::fork();
  ASSERT_GE(process, 0);
  if (process == 0) {
    ::alarm(60);
    for (;;) {
      ::pause();
    }
  }
  HalfLink half({}, process);
  FrameWriter peer(half.segment->outgoing(End::kTaker));
  put(peer, eager(1, 3), "one");
  half.poller.arm();
  half.poll();
  half.poll();
  EXPECT_EQ(half.notes.lost, "");
  put(peer, eager(2, 3), "two");
  ::kill(process, SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(
      ::waitid(P_PID, static_cast<id_t>(process), &ended, WEXITED | WNOWAIT),
      0);
  while (half.poller.arm()) {
    half.poll();
  }
  pollfd wake{half.poller.wakeFd(), POLLIN, 0};
  EXPECT_EQ(::poll(&wake, 1, 10000), 1) << "a sleeper is woken";
  half.poll();
  half.poll();
  half.poll();
  EXPECT_EQ(half.notes.payloads, (std::vector<std::string>{"one", "two"}));
  EXPECT_NE(half.notes.lost, "");
  EXPECT_TRUE(half.notes.ended);
  EXPECT_TRUE(half.link->peerHasEnded());
  EXPECT_EQ(::poll(&wake, 1, 0), 0) << "nobody could sleep";
  ::waitpid(process, nullptr, 0);
}

TEST(ShmLinkTest, AShortBoundWriteLeavesAtOnceOrNotAtAll) {
  HalfLink half;
  FrameWriter peer(half.segment->outgoing(End::kTaker));
  bool ring = false;
  ASSERT_TRUE(peer.bound(3, 16, "word", 4, &ring));
  put(peer, eager(1, 3), "one");
  half.poll();
  EXPECT_EQ(half.notes.bound, std::vector<std::string>{"3@16:word"});
  EXPECT_EQ(half.notes.payloads, std::vector<std::string>{"one"});

  FrameReader reader(half.segment->incoming(End::kTaker), 1 << 20);
  const uint32_t immediate = transport::base::kBoundImmediate | 9;
  ASSERT_TRUE(half.link->writeNow("abcd", 4, {24, 0}, immediate));
  ASSERT_EQ(reader.next(), FrameReader::Event::kBound);
  EXPECT_EQ(reader.boundWrite().index, 9u);
  EXPECT_EQ(reader.boundWrite().offset, 24u);
  // Behind frames that wait for room.
  const std::string payload(400 << 10, 'x');
  int token = 0;
  ASSERT_FALSE(
      half.link->send(eager(1, payload.size()), payload.data(), &token));
  EXPECT_FALSE(half.link->writeNow("abcd", 4, {24, 0}, immediate));
}

// Whoever sleeps on words of the segment needs no byte on the socket.
TEST(ShmLinkTest, APeerIsWokenAsItSleeps) {
  HalfLink half;
  FrameReader peer(half.segment->incoming(End::kTaker), 1 << 20);
  const auto rings = [&] {
    char bytes[8];
    return std::max<ssize_t>(
        ::read(half.otherSocket.get(), bytes, sizeof(bytes)), 0);
  };
  transport::base::FutexWords words;
  EXPECT_FALSE(peer.arm(&words));
  EXPECT_TRUE(half.link->send(eager(1, 3), "one", nullptr));
  EXPECT_EQ(rings(), 0);
  EXPECT_EQ(half.poller.statistics().systemCalls, 1u);
  EXPECT_TRUE(peer.arm(nullptr)) << "it has come";
  EXPECT_TRUE(half.link->send(eager(2, 3), "two", nullptr));
  EXPECT_EQ(rings(), 1);
}

// Of the words of a link that has been closed the kernel says that they are
// gone, or nothing: what else the thread sleeps on still wakes it.
TEST(ShmLinkTest, ALinkMayGoWhileAThreadSleepsOnItsWords) {
  std::atomic<uint32_t> own{0};
  auto half = std::make_unique<HalfLink>();
  transport::base::FutexWords words;
  words.add(own, 0, false);
  EXPECT_EQ(half->poller.wordsToArm(), std::optional<size_t>(1));
  EXPECT_FALSE(half->poller.armWords(words));
  half.reset();
  std::thread other([&] { transport::base::futexWake(own); });
  EXPECT_EQ(words.wait(Deadline::after(std::chrono::seconds(30))),
            transport::base::FutexWords::supported());
  other.join();
}

// Wherever the round ends: what lies in the ring is all that has us polled
// again, and nothing else wakes us.
TEST(ShmLinkTest, AFrameThatHasArrivedIsDeliveredBeforeItSleeps) {
  for (size_t before = 60; before <= 132; before++) {
    HalfLink half;
    FrameWriter peer(half.segment->outgoing(End::kTaker));
    for (size_t n = 1; n <= before; n++) {
      put(peer, eager(n, 3), "one");
    }
    // No small record, and rides in its cell all the same.
    auto last = eager(before + 1, kInlineBytes);
    last.seen = 1000;
    put(peer, last, std::string(kInlineBytes, 'x'));
    while (half.poller.arm()) {
      half.poll();
    }
    EXPECT_EQ(half.notes.payloads.size(), before + 1);
  }
}

// A bound write may come at any moment of a look at the ring.
TEST(ShmLinkTest, BoundWritesAndFramesComeWhileTheRingIsRead) {
  constexpr size_t kEach = 50000;
  HalfLink half;
  std::atomic<bool> enough{false};
  std::thread other([&] {
    FrameWriter peer(half.segment->outgoing(End::kTaker));
    bool ring = false;
    for (size_t n = 1; n <= kEach; n++) {
      FrameProgress progress;
      while (!enough && peer.step(eager(n, 3), "abc", progress, &ring) !=
                            FrameWriter::Step::kDone) {
        std::this_thread::yield();
      }
      while (!enough && !peer.bound(1, n, "word", 4, &ring)) {
        std::this_thread::yield();
      }
    }
  });
  while (half.notes.bound.size() < kEach && half.notes.lost.empty()) {
    half.poll();
  }
  enough = true;
  other.join();
  EXPECT_EQ(half.notes.lost, "");
  EXPECT_EQ(half.notes.payloads.size(), kEach);
  EXPECT_EQ(half.notes.bound.size(), kEach);
}

TEST(ShmLinkTest, AnEndInTheMiddleOfAFrameIsNotInOrder) {
  HalfLink half;
  FrameWriter peer(half.segment->outgoing(End::kTaker));
  FrameProgress progress;
  bool ring = false;
  const std::string payload(300 << 10, 'x');
  ASSERT_EQ(
      peer.step(eager(1, payload.size()), payload.data(), progress, &ring),
      FrameWriter::Step::kMore);
  half.otherSocket.reset();
  half.poller.arm();
  half.poll();
  half.poll();
  half.poll();
  EXPECT_NE(half.notes.lost.find("middle of a frame"), std::string::npos);
  EXPECT_FALSE(half.notes.ended);
}

TEST(ShmLinkTest, GarbageInTheRingLosesTheLink) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 50; round++) {
    HalfLink half;
    const RingMemory ring = half.segment->outgoing(End::kTaker);
    for (uint32_t i = 0; i < ring.cellCount; i++) {
      auto* bytes = reinterpret_cast<char*>(&ring.cells[i]);
      for (size_t b = 4; b < sizeof(Cell); b++) {
        bytes[b] = static_cast<char>(random());
      }
      ring.cells[i].sequence.store(i + 1);
    }
    for (uint32_t i = 0; i < ring.cellCount; i++) {
      half.poll();
    }
    EXPECT_NE(half.notes.lost.find("not our protocol"), std::string::npos);
  }
}

TEST(ShmLinkTest, ImpossibleCountsLoseTheLink) {
  HalfLink half;
  half.segment->outgoing(End::kMaker).control->consumedBytes.store(1 << 30);
  const std::string payload(100 << 10, 'x');
  int token = 0;
  for (uint64_t n = 1; n <= 5; n++) {
    (void)half.link->send(eager(n, payload.size()), payload.data(), &token);
  }
  half.poll();
  EXPECT_NE(half.notes.lost.find("impossible counts"), std::string::npos);
}

TEST(ShmLinkTest, AShortMessageLeavesAtOnceUnlessAnotherOneWaits) {
  HalfLink half;
  FrameReader peer(half.segment->incoming(End::kTaker), 1 << 20);
  transport::base::ShortMessage message;
  message.number = 1;
  message.bytes = 3;
  ASSERT_TRUE(half.link->sendNow(message, "abc"));
  ASSERT_EQ(peer.next(), FrameReader::Event::kMessage);
  EXPECT_EQ(std::string(peer.payload(), peer.message().bytes), "abc");
  EXPECT_EQ(peer.next(), FrameReader::Event::kNothing);
  message.number = 3;
  EXPECT_FALSE(half.link->sendNow(message, "abc")) << "not the next one";
  const std::string payload(400 << 10, 'x');
  int token = 0;
  ASSERT_FALSE(
      half.link->send(eager(2, payload.size()), payload.data(), &token));
  EXPECT_FALSE(half.link->sendNow(message, "abc")) << "it would overtake";
}

TEST(ShmLinkTest, ABorrowedPayloadIsGivenBackWhenItHasLeft) {
  HalfLink half;
  FrameReader peer(half.segment->incoming(End::kTaker), 1 << 20);
  const std::string payload(400 << 10, 'x');
  int token = 0;
  ASSERT_FALSE(
      half.link->send(eager(1, payload.size()), payload.data(), &token));
  EXPECT_FALSE(half.link->flushed());
  std::vector<char> place(payload.size());
  for (auto event = peer.next(); event != FrameReader::Event::kFrame;
       event = peer.next()) {
    if (event == FrameReader::Event::kPayload) {
      peer.setPlace(place.data());
    }
    (void)peer.publish();
    half.poll();
  }
  half.poll();
  EXPECT_EQ(half.notes.completed, std::vector<void*>{&token});
  EXPECT_EQ(std::memcmp(place.data(), payload.data(), payload.size()), 0);
}

// ---- Memory that a peer reads

ProcessMemory memoryOfThisProcess() {
  const Secret secret = makeSecret();
  return {::getpid(), reinterpret_cast<uint64_t>(secret.data()), secret};
}

transport::base::RemoteMemory remote(const std::string& bytes) {
  return {reinterpret_cast<uint64_t>(bytes.data()), 0};
}

TEST(ShmLinkTest, WhatWasReadAfterThePeerLetGoDoesNotCount) {
  HalfLink half(memoryOfThisProcess());
  FrameWriter peer(half.segment->outgoing(End::kTaker));
  const std::string theirs(5000, 'x');
  const std::string more(3 << 20, 'y');
  std::string mine(more.size(), '0');
  int token = 0;
  ASSERT_TRUE(half.link->read(mine.data(), theirs.size(), nullptr,
                              remote(theirs), &token));
  EXPECT_EQ(mine.substr(0, theirs.size()), theirs);
  // More than one round reads.
  ASSERT_FALSE(
      half.link->read(mine.data(), more.size(), nullptr, remote(more), &token));
  peer.letGo();
  half.poll();
  half.poll();
  EXPECT_FALSE(half.link->read(mine.data(), theirs.size(), nullptr,
                               remote(theirs), &token));
  // Nor is it an error that the memory is gone.
  EXPECT_FALSE(half.link->read(mine.data(), 100, nullptr, {64, 0}, &token));
  half.poll();
  EXPECT_TRUE(half.notes.completed.empty());
  EXPECT_EQ(half.notes.lost, "");
  // The peer says itself why.
  put(peer, eager(1, 3), "why");
  half.poll();
  EXPECT_EQ(half.notes.payloads, std::vector<std::string>{"why"});
}

TEST(ShmLinkTest, MemoryThatIsGoneThoughThePeerGoesOnIsAnError) {
  HalfLink half(memoryOfThisProcess());
  char byte = 0;
  int token = 0;
  EXPECT_FALSE(half.link->read(&byte, 1, nullptr, {64, 0}, &token));
  half.poll();
  EXPECT_NE(half.notes.lost.find("reading its memory"), std::string::npos);
}

// Who takes it for dead looks at the ring first.
TEST(ShmLinkTest, APeerHearsWhatThisEndAloneHasFound) {
  for (const bool garbage : {false, true}) {
    HalfLink half(memoryOfThisProcess());
    half.notes.whenLost = [&] { half.link->finishWith(eager(1, 3), "why"); };
    if (garbage) {
      Cell& cell = half.segment->outgoing(End::kTaker).cells[0];
      cell.kind = 77;
      cell.sequence.store(1);
    } else {
      char byte = 0;
      EXPECT_FALSE(half.link->read(&byte, 1, nullptr, {64, 0}, nullptr));
    }
    half.poll();
    half.poll();
    EXPECT_NE(half.notes.lost, "");
    FrameReader peer(half.segment->incoming(End::kTaker), 1 << 20);
    ASSERT_EQ(peer.next(), FrameReader::Event::kMessage);
    EXPECT_EQ(std::string(peer.payload(), peer.message().bytes), "why");
    EXPECT_EQ(peer.next(), FrameReader::Event::kEnd);
    EXPECT_TRUE(peer.hasLetGo());
    FrameWriter writer(half.segment->outgoing(End::kTaker));
    bool ring = false;
    EXPECT_EQ(half.link->finished(), garbage) << "it hears the peer's end";
    (void)writer.end(&ring);
    half.poll();
    EXPECT_TRUE(half.link->finished());
  }
}

// Whether or not there is room in the ring.
TEST(ShmLinkTest, ALinkThatFailsLetsGo) {
  const std::string payload(400 << 10, 'x');
  int token = 0;
  for (const bool full : {false, true}) {
    HalfLink half;
    FrameReader peer(half.segment->incoming(End::kTaker), 1 << 20);
    if (full) {
      ASSERT_FALSE(
          half.link->send(eager(1, payload.size()), payload.data(), &token));
    }
    EXPECT_FALSE(peer.hasLetGo());
    half.link->finishWith(eager(2, 3), "why");
    EXPECT_TRUE(peer.hasLetGo());
  }
  HalfLink abandoned;
  abandoned.link->abandon();
  EXPECT_TRUE(
      FrameReader(abandoned.segment->incoming(End::kTaker), 1).hasLetGo());
  HalfLink orderly;
  orderly.link->finish();
  EXPECT_FALSE(
      FrameReader(orderly.segment->incoming(End::kTaker), 1).hasLetGo());
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
