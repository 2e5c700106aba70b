// Greetings over real sockets: friends, strangers, and what only looks like a
// friend.
#include "transport/base/connector.h"

#include "tests/support/process_group.h"
#include "tests/transport/base/loopback.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <random>
#include <string>
#include <thread>

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace transport::base;  // NOLINT: everything here is about it
using std::chrono::milliseconds;
using std::chrono::seconds;

struct FakeParty : Party {
  explicit FakeParty(uint64_t nonce) : nonce(nonce) {}

  Hello onHello(const Hello& theirs) override {
    greeted++;
    ::poll(nullptr, 0, static_cast<int>(takes.count()));
    Hello mine;
    mine.purpose = theirs.purpose;
    mine.verdict = verdict;
    mine.text = text;
    mine.srcNonce = nonce;
    mine.dstNonce = theirs.srcNonce;
    return mine;
  }
  void onConnected(const Hello& theirs, UniqueFd socket,
                   uint64_t tag) override {
    hellos.push_back(theirs);
    sockets.push_back(std::move(socket));
    tags.push_back(tag);
  }
  void onConnectFailed(uint64_t tag, Failure failure,
                       const std::string& why) override {
    tags.push_back(tag);
    failures.emplace_back(failure, why);
  }

  const uint64_t nonce;
  Verdict verdict = Verdict::kAccepted;
  std::string text;
  milliseconds takes{0};  // to answer
  int greeted = 0;
  std::vector<Hello> hellos;
  std::vector<UniqueFd> sockets;
  std::vector<uint64_t> tags;
  std::vector<std::pair<Failure, std::string>> failures;
};

// Two devices' connectors in one domain; everything is driven by wait().
class ConnectorTest : public ::testing::Test {
 protected:
  ConnectorTest()
      : lock_(domain_.lock()), a(domain_, loopback()), b(domain_, loopback()) {
    a.addParty(alice.nonce, alice);
    b.addParty(bob.nonce, bob);
  }

  Hello greeting(uint64_t to) const {
    Hello hello;
    hello.srcNonce = alice.nonce;
    hello.dstNonce = to;
    hello.srcRank = 3;
    hello.linkKind = "tcp";
    hello.blob = {'x', 'y'};
    return hello;
  }
  void call(uint64_t to, uint64_t tag = 5) {
    a.connect(alice.nonce, b.endpoint(), greeting(to), tag, seconds(10));
  }
  bool waitFor(const std::function<bool()>& ready,
               milliseconds limit = seconds(20)) {
    return domain_.wait(lock_, ready, Deadline::after(limit));
  }
  // A caller that is not ours.
  UniqueFd stranger() {
    UniqueFd socket;
    EXPECT_NE(EMFILE, startConnect(b.endpoint(), &socket));
    pollfd ready{socket.get(), POLLOUT, 0};
    EXPECT_EQ(1, ::poll(&ready, 1, 10000));
    return socket;
  }
  void say(const UniqueFd& socket, const std::string& bytes) {
    EXPECT_EQ(static_cast<ssize_t>(bytes.size()),
              ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  bool closed(const UniqueFd& socket) {
    return waitFor([&] {
      char byte;
      const ssize_t n = ::recv(socket.get(), &byte, 1, 0);
      return n == 0 || (n < 0 && errno != EAGAIN);
    });
  }
  std::string good() const {
    const std::vector<char> bytes = encode(greeting(bob.nonce));
    return {bytes.begin(), bytes.end()};
  }
  void expectWorks() {
    const size_t before = bob.sockets.size();
    call(bob.nonce);
    EXPECT_TRUE(waitFor([&] { return bob.sockets.size() > before; }));
  }

  ProgressDomain domain_;
  ProgressDomain::Lock lock_;
  FakeParty alice{11};
  FakeParty bob{22};
  Connector a;
  Connector b;
};

TEST_F(ConnectorTest, ConnectsBothSidesAndHandsOverTheHellos) {
  call(bob.nonce);
  ASSERT_TRUE(waitFor(
      [&] { return alice.sockets.size() == 1 && bob.sockets.size() == 1; }));
  EXPECT_EQ(3, bob.hellos[0].srcRank);
  EXPECT_EQ((std::vector<char>{'x', 'y'}), bob.hellos[0].blob);
  EXPECT_EQ(0u, bob.tags[0]);
  EXPECT_EQ(5u, alice.tags[0]);
  EXPECT_EQ(bob.nonce, alice.hellos[0].srcNonce);
}

// More answers than are read at once have come, but nobody could read any.
TEST_F(ConnectorTest, WhatCameInTimeIsReadBeforeDeadlinesAreJudged) {
  constexpr int kCalls = 100;
  const auto limit = seconds(2) * slowness();
  ProgressDomain other;
  FakeParty carol{33};
  std::optional<Connector> c;
  {
    const auto lock = other.lock();
    c.emplace(other, loopback());
    c->addParty(carol.nonce, carol);
  }
  Hello probe = greeting(carol.nonce);
  probe.purpose = Purpose::kProbe;
  const auto end = std::chrono::steady_clock::now() + limit;
  {
    const auto lock = other.lock();  // nobody answers
    for (int i = 0; i < kCalls; i++) {
      a.connect(alice.nonce, c->endpoint(), probe, static_cast<uint64_t>(i),
                limit);
    }
    // All that there is to say: a handshake may take the kernel a moment.
    for (int quiet = 0; quiet < 50; ::usleep(1000)) {
      quiet = a.poll() ? 0 : quiet + 1;
    }
  }
  const auto greeted = [&] {
    const auto lock = other.lock();
    return carol.greeted;
  };
  while (greeted() < kCalls && std::chrono::steady_clock::now() < end) {
    ::usleep(1000);
  }
  EXPECT_EQ(greeted(), kCalls);
  // Meanwhile, and from now on, we hold our lock, and read no answer.
  std::this_thread::sleep_until(end + milliseconds(10));
  EXPECT_TRUE(waitFor([&] { return alice.tags.size() == size_t{kCalls}; }));
  EXPECT_EQ(alice.failures.size(), 0u);
  const auto lock = other.lock();
  c.reset();
}

TEST_F(ConnectorTest, ReadsNotAByteBeyondTheHello) {
  const UniqueFd caller = stranger();
  say(caller, good() + "what follows");
  ASSERT_TRUE(waitFor([&] { return bob.sockets.size() == 1; }));
  char bytes[32];
  const ssize_t n = ::recv(bob.sockets[0].get(), bytes, sizeof(bytes), 0);
  EXPECT_EQ("what follows", std::string(bytes, n > 0 ? n : 0));
}

TEST_F(ConnectorTest, AnotherProcessAtTheAddressIsStale) {
  call(999);
  ASSERT_TRUE(waitFor([&] { return alice.failures.size() == 1; }));
  EXPECT_EQ(Party::Failure::kUnknown, alice.failures[0].first);
  EXPECT_EQ(0, bob.greeted);
}

TEST_F(ConnectorTest, ARefusalCarriesItsText) {
  bob.verdict = Verdict::kRefused;
  bob.text = "rank 3 is there already";
  call(bob.nonce);
  ASSERT_TRUE(waitFor([&] { return alice.failures.size() == 1; }));
  EXPECT_EQ(Party::Failure::kRefused, alice.failures[0].first);
  EXPECT_EQ(bob.text, alice.failures[0].second);
  EXPECT_TRUE(bob.sockets.empty());
}

TEST_F(ConnectorTest, CallersWhoseAnswersTakeLongHoldNoDeadlineUp) {
  bob.takes = milliseconds(100);
  const UniqueFd silent = stranger();  // so that bob's connector does not rest
  for (uint64_t tag = 1; tag <= 20; tag++) {
    call(bob.nonce, tag);
  }
  for (int i = 0; i < 2; i++) {  // among the first callers, and the next ones
    const auto start = std::chrono::steady_clock::now();
    EXPECT_FALSE(waitFor([] { return false; }, milliseconds(150)));
    EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(1000));
  }
  bob.takes = milliseconds(0);
  EXPECT_TRUE(waitFor([&] { return alice.sockets.size() == 20; }));
}

TEST_F(ConnectorTest, NobodyThereIsUnreachable) {
  SocketAddress nobody;
  {
    const UniqueFd listener = listenOn(loopback(), 1);
    nobody = localAddress(listener.get());
  }
  a.connect(alice.nonce, nobody, greeting(bob.nonce), 6, seconds(10));
  ASSERT_TRUE(waitFor([&] { return alice.failures.size() == 1; }));
  EXPECT_EQ(Party::Failure::kNobody, alice.failures[0].first);
  EXPECT_NE(std::string::npos, alice.failures[0].second.find(nobody.str()));
  EXPECT_NE(std::string::npos, alice.failures[0].second.find("refused"));
}

TEST_F(ConnectorTest, WhoHangsUpIsNotUnreachable) {
  const UniqueFd listener = listenOn(loopback(), 8);
  for (const bool read : {true, false}) {  // what is not read resets it
    alice.failures.clear();
    a.connect(alice.nonce, localAddress(listener.get()), greeting(bob.nonce), 6,
              seconds(10));
    UniqueFd socket;
    ASSERT_TRUE(
        waitFor([&] { return acceptFrom(listener.get(), &socket) == 0; }));
    ASSERT_TRUE(waitFor([&] {
      pollfd ready{socket.get(), POLLIN, 0};
      return ::poll(&ready, 1, 0) == 1;
    }));
    char byte = 0;
    while (read && ::recv(socket.get(), &byte, 1, 0) > 0) {
    }
    socket.reset();
    ASSERT_TRUE(waitFor([&] { return alice.failures.size() == 1; }));
    EXPECT_EQ(Party::Failure::kHungUp, alice.failures[0].first);
  }
}

TEST_F(ConnectorTest, ACallThatNobodyAnswersEndsAtItsLimit) {
  const UniqueFd silent = listenOn(loopback(), 8);
  Hello probe = greeting(bob.nonce);
  probe.purpose = Purpose::kProbe;
  a.connect(alice.nonce, localAddress(silent.get()), probe, 6,
            milliseconds(50));
  ASSERT_TRUE(waitFor([&] { return alice.failures.size() == 1; }));
  EXPECT_EQ(Party::Failure::kUnreachable, alice.failures[0].first);
  EXPECT_NE(std::string::npos, alice.failures[0].second.find("in time"));
}

// Else a process that was stopped would find two greetings, and believe in the
// one that was given up.
TEST_F(ConnectorTest, APairIsAskedForOnceHoweverLateTheAnswer) {
  const UniqueFd late = listenOn(loopback(), 8);
  a.connect(alice.nonce, localAddress(late.get()), greeting(bob.nonce), 6,
            milliseconds(50));
  EXPECT_FALSE(
      waitFor([&] { return !alice.failures.empty(); }, milliseconds(200)));
  UniqueFd socket;
  ASSERT_EQ(0, acceptFrom(late.get(), &socket));
  const std::vector<char> answer = encode(bob.onHello(greeting(bob.nonce)));
  say(socket, {answer.begin(), answer.end()});
  EXPECT_TRUE(waitFor([&] { return alice.sockets.size() == 1; }));
}

TEST_F(ConnectorTest, ACancelledCallIsClosedAndSaysNothing) {
  const UniqueFd silent = listenOn(loopback(), 8);
  a.connect(alice.nonce, localAddress(silent.get()), greeting(bob.nonce), 6,
            seconds(10));
  UniqueFd socket;
  ASSERT_TRUE(waitFor([&] { return acceptFrom(silent.get(), &socket) == 0; }));
  a.cancel(alice.nonce, 6);
  EXPECT_TRUE(closed(socket));
  EXPECT_TRUE(alice.tags.empty());
  expectWorks();
}

TEST_F(ConnectorTest, AnAnswerFromSomebodyElseDoesNotCount) {
  FakeParty mallory(bob.nonce + 1);
  b.addParty(bob.nonce, mallory);  // answers with another nonce
  call(bob.nonce);
  ASSERT_TRUE(waitFor([&] { return alice.failures.size() == 1; }));
  EXPECT_TRUE(alice.sockets.empty());
}

TEST_F(ConnectorTest, GarbageIsRefusedAtOnce) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100; i++) {
    std::string garbage(1 + random() % 300, '\0');
    for (char& byte : garbage) {
      byte = static_cast<char>(random());
    }
    UniqueFd caller = stranger();
    say(caller, garbage);
    if (garbage.size() >= Hello::kHeadBytes) {
      EXPECT_TRUE(closed(caller));
    }
  }
  EXPECT_EQ(0, bob.greeted);
  expectWorks();
}

TEST_F(ConnectorTest, ATruncatedHelloIsNobody) {
  const std::string hello = good();
  for (size_t cut = 0; cut < hello.size(); cut++) {
    UniqueFd caller = stranger();
    say(caller, hello.substr(0, cut));
    domain_.poll();
    ::shutdown(caller.get(), SHUT_WR);
    EXPECT_TRUE(closed(caller)) << cut;
  }
  EXPECT_EQ(0, bob.greeted);
  expectWorks();
}

TEST_F(ConnectorTest, AnAlteredHelloIsNobody) {
  const std::string hello = good();
  for (size_t i = 0; i < hello.size(); i++) {
    std::string altered = hello;
    altered[i] = static_cast<char>(altered[i] ^ (1 << i % 8));
    UniqueFd caller = stranger();
    say(caller, altered);
    ::shutdown(caller.get(), SHUT_WR);
    EXPECT_TRUE(closed(caller)) << i;
  }
  EXPECT_EQ(0, bob.greeted);
  expectWorks();
}

TEST_F(ConnectorTest, SilentCallersDoNotKeepFriendsOut) {
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 400; i++) {
    silent.push_back(stranger());
    domain_.poll();
  }
  expectWorks();
  EXPECT_TRUE(closed(silent[0])) << "the oldest gives way";
}

TEST_F(ConnectorTest, WithoutDescriptorsItWaitsForBetterTimes) {
  // Once with descriptors: a sanitizer's first look at a type needs some.
  expectWorks();
  call(999);
  ASSERT_TRUE(waitFor([&] { return alice.failures.size() == 1; }));
  const size_t before = bob.sockets.size();
  rlimit old{};
  ASSERT_EQ(0, ::getrlimit(RLIMIT_NOFILE, &old));
  UniqueFd caller = stranger();
  const UniqueFd top(::dup(0));
  const rlimit none{static_cast<rlim_t>(top.get() + 1), old.rlim_max};
  ASSERT_EQ(0, ::setrlimit(RLIMIT_NOFILE, &none));
  say(caller, good());
  const bool accepted =
      waitFor([&] { return bob.sockets.size() > before; }, milliseconds(50));
  a.connect(alice.nonce, b.endpoint(), greeting(bob.nonce), 9, seconds(5));
  const bool failed = waitFor([&] { return alice.failures.size() == 2; });
  ASSERT_EQ(0, ::setrlimit(RLIMIT_NOFILE, &old));
  EXPECT_FALSE(accepted);
  ASSERT_TRUE(failed);
  EXPECT_EQ(Party::Failure::kShort, alice.failures[1].first);
  EXPECT_NE(std::string::npos, alice.failures[1].second.find("ulimit -n"));
  EXPECT_TRUE(waitFor([&] { return bob.sockets.size() > before; }));
}

TEST_F(ConnectorTest, ARemovedPartyHearsNothing) {
  call(bob.nonce);
  a.removeParty(alice.nonce);
  EXPECT_FALSE(waitFor([&] { return !alice.tags.empty(); }, milliseconds(50)));
}

TEST_F(ConnectorTest, AProbeAsksAndLeaves) {
  Hello probe = greeting(bob.nonce);
  probe.purpose = Purpose::kProbe;
  a.connect(alice.nonce, b.endpoint(), probe, 1, seconds(10));
  ASSERT_TRUE(waitFor([&] { return !alice.tags.empty(); }));
  EXPECT_EQ(Verdict::kAccepted, alice.hellos.at(0).verdict);
  EXPECT_EQ(1, bob.greeted);
  EXPECT_TRUE(bob.sockets.empty());
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
