// A lifeline to a neighbour that the test plays, byte by byte: lies, and
// another process at a dead one's address.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "tests/support/process_group.h"
#include "tests/transport/base/loopback.h"
#include "transport/base/lifeline.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace transport::base;  // NOLINT: everything here is about it
using internal::Cause;
using std::chrono::seconds;

constexpr uint64_t kWorld = 78;
constexpr uint64_t kOwn = 1000;
constexpr uint64_t kTheirs = 1001;

bool readable(int fd) {
  pollfd ready{fd, POLLIN, 0};
  return ::poll(&ready, 1, 20'000) == 1;
}

// Rank 1, which rank 0 calls.
class Neighbour {
 public:
  Neighbour() : listener_(listenOn(loopback(), 8)) {}

  SocketAddress endpoint() const { return localAddress(listener_.get()); }

  // The next one that calls; its greeting is taken.
  UniqueFd accept(Purpose purpose) {
    UniqueFd socket;
    EXPECT_TRUE(readable(listener_.get()));
    EXPECT_EQ(acceptFrom(listener_.get(), &socket), 0);
    std::vector<char> bytes = take(socket, Hello::kHeadBytes);
    const size_t length = helloLength(
        std::span<const char, Hello::kHeadBytes>(bytes.data(), bytes.size()));
    const std::vector<char> rest = take(socket, length - bytes.size());
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    EXPECT_EQ(decodeHello(bytes).purpose, purpose);
    return socket;
  }

  static void answer(const UniqueFd& socket, Verdict verdict, uint64_t nonce) {
    Hello mine;
    mine.verdict = verdict;
    mine.srcRank = 1;
    mine.srcNonce = nonce;
    mine.dstNonce = kOwn;
    send(socket, encode(mine));
  }

  static void say(const UniqueFd& socket, FrameType type,
                  const std::vector<char>& payload) {
    FrameHeader header;
    header.type = type;
    header.payloadBytes = static_cast<uint32_t>(payload.size());
    std::vector<char> bytes(FrameHeader::kBytes);
    encode(header, bytes.data());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    send(socket, bytes);
  }

  // The lifeline, open on both sides.
  UniqueFd meet() {
    UniqueFd line = accept(Purpose::kLifeline);
    answer(line, Verdict::kAccepted, kTheirs);
    take(line, FrameHeader::kBytes);
    say(line, FrameType::kCredit, {});
    return line;
  }

 private:
  static std::vector<char> take(const UniqueFd& socket, size_t bytes) {
    std::vector<char> all(bytes);
    for (size_t have = 0; have < bytes && readable(socket.get());) {
      const ssize_t n =
          ::recv(socket.get(), all.data() + have, bytes - have, 0);
      EXPECT_GT(n, 0);
      if (n <= 0) {
        break;
      }
      have += static_cast<size_t>(n);
    }
    return all;
  }
  static void send(const UniqueFd& socket, const std::vector<char>& bytes) {
    EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  UniqueFd listener_;
};

// Rank 0, and what it hears.
class Own {
 public:
  explicit Own(const Neighbour& neighbour, int pid = 0) {
    Lifelines::instance().join(kWorld, kOwn, 0, 2,
                               {{1, kTheirs, neighbour.endpoint(), pid}},
                               [this](const Cause& cause) {
                                 const std::lock_guard guard(mutex_);
                                 causes_.push_back(cause);
                                 heard_.notify_all();
                               });
  }
  ~Own() { leave(); }

  void leave() { Lifelines::instance().leave(kWorld, kOwn); }
  // The first one.
  Cause await() {
    std::unique_lock lock(mutex_);
    const bool any = heard_.wait_for(lock, seconds(10) * patience(),
                                     [&] { return !causes_.empty(); });
    EXPECT_TRUE(any);
    return any ? causes_.front() : Cause{};
  }
  size_t heard() {
    const std::lock_guard guard(mutex_);
    return causes_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable heard_;
  std::vector<Cause> causes_;
};

// That a rank has left is found by each one itself. (What follows from it looks
// for that rank.)
TEST(LifelinePeerTest, ALieInARanksOwnNameIsNotBelieved) {
  for (const int culprit : {100'000'000, -1, 0, 1}) {
    Neighbour neighbour;
    Own own(neighbour);
    {
      const UniqueFd line = neighbour.meet();
      Cause lie;
      lie.kind = Cause::Kind::kClosed;
      lie.foundBy = 0;
      lie.culprit = culprit;
      lie.text = "it has left";
      Neighbour::say(line, FrameType::kAbort, encode(lie));
    }
    const Cause cause = own.await();
    EXPECT_EQ(cause.kind, Cause::Kind::kPeerLost) << cause.text;
    EXPECT_EQ(cause.culprit, 1) << cause.text;
    EXPECT_EQ(own.heard(), 1U);
  }
}

// What a neighbour has found itself is.
TEST(LifelinePeerTest, WhatANeighbourHasFoundIsBelieved) {
  Neighbour neighbour;
  Own own(neighbour);
  const UniqueFd line = neighbour.meet();
  Cause news;
  news.kind = Cause::Kind::kClosed;
  news.foundBy = 1;
  news.culprit = 1;
  news.text = "it closed its pair";
  Neighbour::say(line, FrameType::kAbort, encode(news));
  const Cause cause = own.await();
  EXPECT_EQ(cause.kind, Cause::Kind::kClosed);
  EXPECT_EQ(cause.text, news.text);
}

// A process that has the pid that the neighbour says it has.
class Stand {
 public:
  Stand() : pid_(::fork()) {
    if (pid_ == 0) {
      ::pause();
      ::_exit(0);
    }
  }
  ~Stand() { end(); }
  int pid() const { return pid_; }
  void end() {
    if (!ended_) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
      ended_ = true;
    }
  }

 private:
  const int pid_;
  bool ended_ = false;
};

// The process has ended; at its address somebody is asked who is there.
struct Asked {
  Stand stand;
  Neighbour neighbour;
  Own own{neighbour, stand.pid()};
  UniqueFd line = neighbour.meet();
  UniqueFd probe = (stand.end(), neighbour.accept(Purpose::kProbe));
};

TEST(LifelinePeerTest, AnotherProcessAtADeadOnesAddressIsNoSignOfLife) {
  struct Answer {
    Verdict verdict;
    uint64_t nonce;
  };
  for (const Answer& other : {Answer{Verdict::kUnknown, 0},
                              Answer{Verdict::kAccepted, kTheirs + 1}}) {
    Asked asked;
    Neighbour::answer(asked.probe, other.verdict, other.nonce);
    const Cause cause = asked.own.await();
    EXPECT_EQ(cause.kind, Cause::Kind::kPeerLost);
    EXPECT_EQ(cause.culprit, 1);
    EXPECT_NE(cause.text.find("has ended"), std::string::npos) << cause.text;
  }
}

TEST(LifelinePeerTest, WhoAnswersOrHasLeftIsNotTakenForDead) {
  for (const bool leaves : {false, true}) {
    Asked asked;
    if (leaves) {
      Neighbour::say(asked.line, FrameType::kBye, {});
    }
    Neighbour::answer(asked.probe,
                      leaves ? Verdict::kUnknown : Verdict::kAccepted,
                      leaves ? 0 : kTheirs);
    // It is closed: the answer was heard.
    EXPECT_TRUE(readable(asked.probe.get()));
    asked.own.leave();
    EXPECT_EQ(asked.own.heard(), 0U);
  }
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
