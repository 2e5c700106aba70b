// A process is killed: every other rank knows within a second, says who it was,
// and ends well.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <random>

#include "gloo/common/error.h"
#include "gloo/transport/auto/device.h"
#include "gloo/transport/shm/device.h"
#include "tests/multiprocess/job.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

constexpr int kVictim = 2;

// The victim does `harm` (and says "now" where it wants to be killed), the
// others `wait`.
void killWhile(const Job::Body& harm, const Job::Body& wait, int size = 3,
               bool lazy = false) {
  Job::Options options;
  options.size = size;
  options.lazy = lazy;
  Job job(options, [&](Child& child, const std::shared_ptr<Context>& context) {
    (child.rank == kVictim ? harm : wait)(child, context);
  });
  job.go();
  job.group().expect(kVictim, "now");
  const auto killed = now();
  job.group().signal(kVictim, SIGKILL);
  const auto slowest = job.expectDeath(kVictim, killed);
  ::testing::Test::RecordProperty("slowest_ms",
                                  std::to_string(slowest.count() / 1000000));
}

void sayNowAndWait(Child& child, const std::shared_ptr<Context>&) {
  child.say("now");
  child.hear();
}

void waitForVictim(Child&, const std::shared_ptr<Context>& context) {
  recvFrom(*context, kVictim, 1, 100);
}

TEST(KilledTest, WhileOthersReceiveFromIt) {
  killWhile(&sayNowAndWait, &waitForVictim);
}

TEST(KilledTest, WhileOthersReceiveFromItLazily) {
  killWhile(
      [](Child& child, const std::shared_ptr<Context>& context) {
        sendTo(*context, 0, 9, 1);
        sendTo(*context, 1, 9, 1);
        sayNowAndWait(child, context);
      },
      [](Child& child, const std::shared_ptr<Context>& context) {
        recvFrom(*context, kVictim, 9, 1);
        waitForVictim(child, context);
      },
      3, true);
}

TEST(KilledTest, WhileOthersSendToIt) {
  killWhile(
      [](Child& child, const std::shared_ptr<Context>& context) {
        recvFrom(*context, 0, 2, 1);
        recvFrom(*context, 1, 2, 1);
        sayNowAndWait(child, context);
      },
      [](Child&, const std::shared_ptr<Context>& context) {
        // Not filled; to register it, too, could take longer than finding the
        // death: so that comes first.
        constexpr size_t kBytes = size_t{64} << 20;
        const std::unique_ptr<char[]> bytes(new char[kBytes]);
        auto buffer = context->createUnboundBuffer(bytes.get(), kBytes);
        buffer->send(kVictim, 1);
        sendTo(*context, kVictim, 2, 1);
        buffer->waitSend();
      });
}

TEST(KilledTest, WhileItSends) {
  killWhile(
      [](Child& child, const std::shared_ptr<Context>& context) {
        std::vector<char> bytes(64 << 20);
        auto buffer = context->createUnboundBuffer(bytes.data(), bytes.size());
        buffer->send(0, 1);
        buffer->send(1, 1);
        sayNowAndWait(child, context);
      },
      [](Child&, const std::shared_ptr<Context>& context) {
        recvFrom(*context, kVictim, 1, 64 << 20);
        recvFrom(*context, kVictim, 2, 1);
      });
}

TEST(KilledTest, WhileItReceives) {
  killWhile(
      [](Child& child, const std::shared_ptr<Context>& context) {
        std::vector<char> bytes(64 << 20);
        auto buffer = context->createUnboundBuffer(bytes.data(), bytes.size());
        buffer->recv(0, 1);
        buffer->recv(1, 1);
        sayNowAndWait(child, context);
      },
      [](Child&, const std::shared_ptr<Context>& context) {
        sendTo(*context, kVictim, 1, 64 << 20);
        recvFrom(*context, kVictim, 2, 1);
      });
}

// Nobody waits for the victim itself: the cause is told all the same.
TEST(KilledTest, WhileOthersWaitForEachOther) {
  killWhile(&sayNowAndWait,
            [](Child&, const std::shared_ptr<Context>& context) {
              recvFrom(*context, (context->rank + 1) % 2, 1, 100);
            });
}

TEST(KilledTest, InALargerGroup) {
  killWhile(
      &sayNowAndWait,
      [](Child&, const std::shared_ptr<Context>& context) {
        const int next = (context->rank + 1) % context->size;
        recvFrom(*context, next == kVictim ? kVictim + 1 : next, 1, 100);
      },
      8);
}

// A rank that is busy elsewhere learns of it at its next operation.
TEST(KilledTest, WhileAllAreIdle) {
  Job job(Job::Options{},
          [](Child& child, const std::shared_ptr<Context>& context) {
            child.say("idle");
            child.hear();
            recvFrom(*context, (context->rank + 1) % 2, 1, 100);
          });
  job.go();
  job.group().expectAll("idle");
  const auto killed = now();
  job.group().signal(kVictim, SIGKILL);
  job.group().tell(0, "go on");
  job.group().tell(1, "go on");
  job.expectDeath(kVictim, killed);
}

// Nobody does anything until all know: then their next operation says at once
// who it was.
TEST(KilledTest, WhileAllStayIdle) {
  Job job(Job::Options{}, [](Child& child,
                             const std::shared_ptr<Context>& context) {
    if (child.rank == kVictim) {
      sayNowAndWait(child, context);
    }
    const auto start = now();
    const auto& pair = context->getPair(kVictim);
    while (pair->isConnected() && now() - start < std::chrono::seconds(20)) {
      ::usleep(1000);
    }
    const auto known = now();
    EXPECT_THROW(sendTo(*context, kVictim, 1, 1 << 20), PeerLostException);
    EXPECT_LT(now() - known, std::chrono::milliseconds(100) * slowness());
    recvFrom(*context, (context->rank + 1) % 2, 1, 100);
  });
  job.go();
  job.group().expect(kVictim, "now");
  const auto killed = now();
  job.group().signal(kVictim, SIGKILL);
  job.expectDeath(kVictim, killed);
}

// Its forked children hold copies of its descriptors: that must not hide it.
// The victim's child, which `make` makes as fork(2) does, outlives it.
void expectDeathBesideAChild(const Job::Options& options,
                             const std::function<long()>& make) {
  Job job(options, [&](Child& child, const std::shared_ptr<Context>& context) {
    if (child.rank == kVictim) {
      const long pid = make();
      if (pid == 0) {
        ::alarm(60);
        ::pause();
        ::_exit(0);
      }
      child.say(std::to_string(pid));
      child.hear();
    }
    waitForVictim(child, context);
  });
  job.go();
  const auto grandchild = static_cast<pid_t>(
      std::stol(job.group().hear(kVictim, std::chrono::seconds(20))));
  const auto killed = now();
  job.group().signal(kVictim, SIGKILL);
  job.expectDeath(kVictim, killed);
  EXPECT_EQ(::kill(grandchild, 0), 0) << "the child must have outlived it";
  ::kill(grandchild, SIGKILL);
}

TEST(KilledTest, WithLiveChildren) {
  expectDeathBesideAChild(Job::Options{}, [] { return long{::fork()}; });
}

// A child made past the library's handlers of fork(2) holds all sockets open.
class HeldSocketsTest : public ::testing::TestWithParam<bool> {};

TEST_P(HeldSocketsTest, ADeathThatTheyHideIsSeen) {
  Job::Options options;
  options.device = [](int) {
    return GetParam() ? transport::CreateDevice()
                      : transport::shm::CreateDevice();
  };
  expectDeathBesideAChild(
      options, [] { return ::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); });
}

INSTANTIATE_TEST_SUITE_P(, HeldSocketsTest, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "automatic" : "shm";
                         });

// At a random point of random traffic. The seed is in the output.
class RandomHarmTest : public ::testing::TestWithParam<int> {};

void randomTraffic(Context& context, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (uint64_t i = 0;; i++) {
    const uint64_t r = random();
    const size_t bytes = r % 7 == 0 ? r % (3 << 20) : r % 5000;
    switch ((r >> 40) % 3) {
      case 0:
        exchangeRing(context, i, bytes);
        break;
      case 1: {
        const int root =
            static_cast<int>((r >> 50) % static_cast<uint64_t>(context.size));
        for (int peer = 0; peer < context.size && context.rank == root;
             peer++) {
          if (peer != root) {
            sendTo(context, peer, i, bytes);
          }
        }
        if (context.rank != root) {
          recvFrom(context, root, i, bytes);
        }
        break;
      }
      default:
        for (int k = 0; k < 4; k++) {
          exchangeRing(context, (uint64_t{1} << 40) + i * 4 + k, bytes % 500);
        }
    }
  }
}

void randomHarm(uint64_t seed, bool stop) {
  harmAtRandom(seed, stop, {},
               [seed](Child&, const std::shared_ptr<Context>& context) {
                 randomTraffic(*context, seed);
               });
}

TEST_P(RandomHarmTest, EveryoneElseKnows) {
  constexpr int kKills = 16;
  constexpr int kStops = 5;
  for (int i = 0; i < kKills + kStops && !HasFailure(); i++) {
    randomHarm(static_cast<uint64_t>(GetParam() * 1000 + i), i >= kKills);
  }
}

// 10 x 21: 160 kills and 50 stops.
INSTANTIATE_TEST_SUITE_P(, RandomHarmTest, ::testing::Range(0, 10));

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
