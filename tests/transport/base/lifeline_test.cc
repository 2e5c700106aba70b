// Lifelines between real processes that die, are stopped, or leave.
#include "transport/base/lifeline.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <sstream>

#include "tests/support/process_group.h"
#include "tests/support/sanitized.h"
#include "tests/support/shared_flag.h"
#include "tests/support/usage.h"
#include "tests/transport/base/loopback.h"
#include "transport/base/connector.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace transport::base;  // NOLINT: everything here is about it
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kWorld = 77;

uint64_t nonceOf(int rank) { return 1000 + static_cast<uint64_t>(rank); }

// Accepts lifelines, as a context does.
struct Acceptor : Party {
  explicit Acceptor(int rank) : rank(rank) {}
  Hello onHello(const Hello& theirs) override {
    Hello mine;
    mine.purpose = theirs.purpose;
    mine.verdict = Verdict::kAccepted;
    mine.srcRank = rank;
    mine.srcNonce = nonceOf(rank);
    mine.dstNonce = theirs.srcNonce;
    return mine;
  }
  void onConnected(const Hello&, UniqueFd, uint64_t) override {}
  void onConnectFailed(uint64_t, Failure, const std::string&) override {}
  const int rank;
};

// One rank with its lifelines; the cause it hears is awaited.
class Rank {
 public:
  Rank(int rank, int size, Child* child)
      : rank_(rank), size_(size), acceptor_(rank) {
    causes_.reserve(4);
    {
      const auto lock = domain_.lock();
      connector_ = std::make_unique<Connector>(domain_, loopback(0));
      connector_->addParty(nonceOf(rank), acceptor_);
    }
    std::ostringstream line;
    line << connector_->endpoint().port() << ' ' << ::getpid();
    child->say(line.str());
    std::istringstream all(child->hear());
    for (int peer = 0; peer < size; peer++) {
      int port = 0;
      int pid = 0;
      all >> port >> pid;
      if (peer != rank) {
        peers_.push_back({peer, nonceOf(peer), loopback(port), pid});
      }
    }
  }
  ~Rank() {
    Lifelines::instance().leave(kWorld, nonceOf(rank_));
    const auto lock = domain_.lock();
    connector_.reset();
  }

  void join() {
    Lifelines::instance().join(kWorld, nonceOf(rank_), rank_, size_, peers_,
                               [this](const internal::Cause& cause) {
                                 const std::lock_guard guard(mutex_);
                                 causes_.push_back(cause);
                                 heard_.notify_all();
                               });
  }
  bool await(milliseconds limit) {
    std::unique_lock lock(mutex_);
    return heard_.wait_for(lock, limit, [&] { return !causes_.empty(); });
  }
  std::vector<internal::Cause> causes() {
    const std::lock_guard guard(mutex_);
    return causes_;
  }

 private:
  const int rank_;
  const int size_;
  Acceptor acceptor_;
  ProgressDomain domain_;
  std::unique_ptr<Connector> connector_;
  std::vector<Lifelines::Peer> peers_;
  std::mutex mutex_;
  std::condition_variable heard_;
  std::vector<internal::Cause> causes_;
};

// Carries the endpoints between the children, as a store would.
void exchange(ProcessGroup& group) {
  std::string all;
  for (int rank = 0; rank < group.size(); rank++) {
    all += group.hear(rank, seconds(20)) + ' ';
  }
  group.tellAll(all);
}

// All lifelines of this rank are open.
void awaitMet(int rank) {
  const auto limit = now() + seconds(20) * patience();
  while (!Lifelines::instance().met(kWorld, nonceOf(rank)) && now() < limit) {
    ::sched_yield();
  }
  EXPECT_TRUE(Lifelines::instance().met(kWorld, nonceOf(rank)));
}

// The same; then the parent goes on.
void settle(Child& child) {
  awaitMet(child.rank);
  child.say("joined");
  child.hear();
}

void awaitCulprit(Child& child, Rank& rank, int culprit) {
  EXPECT_TRUE(rank.await(seconds(20)));
  ASSERT_EQ(1u, rank.causes().size());
  EXPECT_EQ(culprit, rank.causes()[0].culprit);
  child.say("knows");
}

TEST(Lifelines, TheDeathOfAProcessReachesEveryRankWithinASecond) {
  for (const int size : {2, 3, 8, 16}) {
    ProcessGroup group(size, [&](Child& child) {
      Rank rank(child.rank, size, &child);
      rank.join();
      settle(child);
      awaitCulprit(child, rank, 1);
      child.hear();
    });
    exchange(group);
    group.expectAll("joined");
    group.tellAll("go");
    const auto start = now();
    group.signal(1, SIGKILL);
    for (int rank = 0; rank < size; rank++) {
      if (rank != 1) {
        EXPECT_EQ("knows", group.hear(rank, seconds(20)));
      }
    }
    EXPECT_LT(now() - start, seconds(1) * slowness());
    EXPECT_TRUE(group.join(1, seconds(5)).killedBy(SIGKILL));
    group.tellAll("end");
    for (int rank = 0; rank < size; rank++) {
      if (rank != 1) {
        group.expectEnd(rank, seconds(20));
      }
    }
  }
}

#ifndef GLOO_TEST_SANITIZED

// It may have missed a death then, and must not wait for who has died.
TEST(Lifelines, ARankWithoutMemoryForTheNewsIsToldThat) {
  SharedFlag exhausted;
  ProcessGroup group(2, [&](Child& child) {
    Rank rank(child.rank, 2, &child);
    rank.join();
    settle(child);
    if (child.rank == 0) {
      {
        const NoMemory none;
        exhausted.set();
        EXPECT_TRUE(rank.await(seconds(20)));
      }
      awaitCulprit(child, rank, 0);
    }
    child.hear();
  });
  exchange(group);
  group.expectAll("joined");
  group.tellAll("go");
  const auto limit = now() + seconds(20) * patience();
  while (!exhausted.isSet() && now() < limit) {
    ::sched_yield();
  }
  group.signal(1, SIGKILL);
  EXPECT_EQ("knows", group.hear(0, seconds(20)));
  EXPECT_TRUE(group.join(1, seconds(5)).killedBy(SIGKILL));
  group.tellAll("end");
  group.expectEnd(0, seconds(20));
}

#endif

// Before it had a lifeline to anybody, and when the lines are about to open:
// the others find nobody where it was.
TEST(Lifelines, TheDeathOfAProcessThatHasNotMetTheOthersIsKnown) {
  constexpr int kSize = 5;
  for (int round = 0; round < 20 && !::testing::Test::HasFailure(); round++) {
    const int victim = round % kSize;
    const bool joins = round >= kSize;
    ProcessGroup group(kSize, [&](Child& child) {
      Rank rank(child.rank, kSize, &child);
      if (child.rank == victim) {
        if (joins) {
          rank.join();
        }
        ::usleep(static_cast<useconds_t>(round - kSize) * 50 * joins);
        ::kill(::getpid(), SIGKILL);
      }
      rank.join();
      awaitCulprit(child, rank, victim);
      child.hear();
    });
    const auto start = now();
    exchange(group);
    for (int rank = 0; rank < kSize; rank++) {
      if (rank != victim) {
        EXPECT_EQ("knows", group.hear(rank, seconds(20))) << victim;
      }
    }
    EXPECT_LT(now() - start, seconds(3) * patience()) << victim;
    group.tellAll("end");
    EXPECT_TRUE(group.join(victim, seconds(5)).killedBy(SIGKILL));
    group.joinAll();
  }
}

TEST(Lifelines, WhoLeavesInOrderDisturbsNobody) {
  for (int round = 0; round < 20; round++) {
    ProcessGroup group(5, [&](Child& child) {
      auto rank = std::make_unique<Rank>(child.rank, 5, &child);
      rank->join();
      if (child.rank % 2 == round % 2) {
        awaitMet(child.rank);
        rank.reset();  // at once: the others may not have met theirs yet
        child.say("left");
        return;
      }
      child.say("left");
      child.hear();
      EXPECT_FALSE(rank->await(milliseconds(50)))
          << rank->causes()[0].text << ", found by "
          << rank->causes()[0].foundBy;
    });
    exchange(group);
    group.expectAll("left");
    group.tellAll("all have left");
    group.joinAll();
  }
}

TEST(Lifelines, ACauseSpreadsPastDeadAndStoppedRanks) {
  constexpr int kSize = 16;
  ProcessGroup group(kSize, [&](Child& child) {
    Rank rank(child.rank, kSize, &child);
    rank.join();
    settle(child);
    if (child.rank == 0) {
      internal::Cause cause;
      cause.kind = internal::Cause::Kind::kMismatch;
      cause.foundBy = 0;
      cause.culprit = 9;
      cause.text = "ranks disagree";
      Lifelines::instance().flood(kWorld, nonceOf(0), cause);
      child.hear();
      EXPECT_TRUE(rank.causes().empty()) << "its own";
      return;
    }
    EXPECT_TRUE(rank.await(seconds(20)));
    EXPECT_EQ("ranks disagree", rank.causes().at(0).text);
    EXPECT_EQ(internal::Cause::Kind::kMismatch, rank.causes().at(0).kind);
    child.say("knows");
    child.hear();
  });
  exchange(group);
  group.expectAll("joined");
  for (const int stopped : {1, 2, 15}) {
    group.signal(stopped, SIGSTOP);
  }
  group.tellAll("go");
  for (int rank = 3; rank < 15; rank++) {
    EXPECT_EQ("knows", group.hear(rank, seconds(20)));
  }
  for (const int stopped : {1, 2, 15}) {
    group.signal(stopped, SIGCONT);
  }
  for (const int stopped : {1, 2, 15}) {
    EXPECT_EQ("knows", group.hear(stopped, seconds(20)));
  }
  group.tellAll("end");
  group.joinAll();
}

// The child of a dead rank does not keep its connections, as fork.h promises;
// one that was made past the fork handlers does, and is seen through.
TEST(Lifelines, ADeadRanksChildrenDoNotHideItsDeath) {
  ProcessGroup group(3, [&](Child& child) {
    Rank rank(child.rank, 3, &child);
    rank.join();
    if (child.rank == 1) {
      settle(child);
      if (::_Fork() == 0) {  // runs no handlers
        ::sleep(5);
        ::_exit(0);
      }
      ::kill(::getpid(), SIGKILL);
    }
    settle(child);
    awaitCulprit(child, rank, 1);
    child.hear();
  });
  exchange(group);
  group.expectAll("joined");
  const auto start = now();
  group.tellAll("go");
  EXPECT_EQ("knows", group.hear(0, seconds(20)));
  EXPECT_EQ("knows", group.hear(2, seconds(20)));
  EXPECT_LT(now() - start, seconds(1) * slowness());
  group.tellAll("end");
  EXPECT_TRUE(group.join(1, seconds(5)).killedBy(SIGKILL));
  group.expectEnd(0, seconds(20));
  group.expectEnd(2, seconds(20));
}

TEST(Lifelines, IdleOnesUseNoProcessorTime) {
  ProcessGroup group(4, [&](Child& child) {
    Rank rank(child.rank, 4, &child);
    rank.join();
    settle(child);
    const auto before = cpuTime();
    EXPECT_FALSE(rank.await(milliseconds(1000)));
    EXPECT_LT(cpuTime() - before, milliseconds(10) * slowness());
    child.say("idle");
    child.hear();
  });
  exchange(group);
  group.expectAll("joined");
  group.tellAll("go");
  group.expectAll("idle");
  group.tellAll("end");
  group.joinAll();
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
