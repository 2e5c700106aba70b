// A rank on another host comes to harm. Guest 1 has the victim, rank 1 or the
// last one.
#include "tests/soft_roce/two_hosts.h"

#include <signal.h>

#include <memory>
#include <thread>
#include <vector>

#include "gloo/transport/auto/device.h"
#include "gloo/transport/unbound_buffer.h"
#include "tests/soft_roce/cable.h"
#include "tests/support/hierarchy.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kKnown(1);

void waitForVictim(Child& child, const std::shared_ptr<Context>& context) {
  if (context->rank == 1) {
    child.hear();
  } else {
    recvFrom(*context, 1, 1, 1 << 20);
  }
}

// Pairs that are there from the start, or made at their first use.
class EachWayTest : public TwoHostsTest,
                    public ::testing::WithParamInterface<bool> {
 protected:
  Job::Options eachWay(int processes, const std::string& job = "job") const {
    Job::Options options = this->options(processes, job);
    options.lazy = GetParam();
    return options;
  }
};

// Starts a message between the two.
using Start = void (*)(transport::UnboundBuffer& buffer, int peer);
struct Way {
  const char* name;
  Start victims;
  Start others;
  bool isIdle;  // the other one asks for nothing until later
};
constexpr Start kSends = [](auto& buffer, int peer) { buffer.send(peer, 1); };
constexpr Start kReceives = [](auto& buffer, int peer) {
  buffer.recv(peer, 1);
};
constexpr Start kDoesNothing = [](auto&, int) {};
constexpr Way kWays[] = {{"receives from it", kDoesNothing, kReceives, false},
                         {"sends to it", kDoesNothing, kSends, false},
                         {"gets what it sends", kSends, kReceives, false},
                         {"sends what it gets", kReceives, kSends, false},
                         {"is idle", kDoesNothing, kDoesNothing, true}};

// Victim and other one have begun, and the other one has an error.
void moveUntilHarm(Child& child, const std::shared_ptr<Context>& context,
                   const Way& way) {
  constexpr size_t kBytes = 32 << 20;  // takes a while
  exchangeRing(*context, 2, 1);
  const std::unique_ptr<char[]> bytes(new char[kBytes]);
  auto buffer = context->createUnboundBuffer(bytes.get(), kBytes);
  (context->rank == 1 ? way.victims : way.others)(*buffer, 1 - context->rank);
  child.say("now");
  if (context->rank == 1 || way.isIdle) {
    child.hear();
  }
  recvFrom(*context, 1, 2, 1);
}

TEST_P(EachWayTest, AProcessOnTheOtherOneIsKilled) {
  for (const Way& way : kWays) {
    SCOPED_TRACE(way.name);
    Job job(eachWay(1, way.name),
            [&](Child& child, const std::shared_ptr<Context>& context) {
              moveUntilHarm(child, context, way);
            });
    job.go();
    job.group().expectAll("now");
    meet(MakeString("connected, ", way.name));
    const std::string harm = MakeString("harmed, ", way.name);
    if (hosts().own == 1) {
      say(harm);
      job.group().signal(0, SIGKILL);
      job.group().join(0, seconds(5));
      continue;
    }
    await(harm);
    const auto harmed = now();
    if (way.isIdle) {
      std::this_thread::sleep_for(kKnown);
      job.group().tell(0, "go on");
    }
    const Failure failure = job.failure(0, seconds(60));
    EXPECT_EQ(failure.type, "PeerLost") << failure.text;
    EXPECT_TRUE(failure.names("rank 1")) << failure.text;
    // Who was idle has it at once.
    EXPECT_LT(failure.at - harmed, kKnown * (way.isIdle ? 1.2 : 1))
        << failure.text;
    job.group().joinAll();
  }
}

TEST_P(EachWayTest, AProcessOnTheOtherOneIsStopped) {
  constexpr seconds kTimeout(4);
  Job job(eachWay(1),
          [&](Child& child, const std::shared_ptr<Context>& context) {
            context->setTimeout(kTimeout);
            waitForVictim(child, context);
          });
  if (hosts().own == 1) {
    job.group().expectAll("connected");
    job.group().signal(0, SIGSTOP);
    say("harmed");
    await("known");
    job.group().signal(0, SIGKILL);
    job.group().join(0, seconds(5));
    return;
  }
  await("harmed");
  const auto harmed = now();
  job.go();
  const Failure failure = job.failure(0, seconds(60));
  say("known");
  EXPECT_EQ(failure.type, "Timeout") << failure.text;
  EXPECT_TRUE(failure.names("rank 1")) << failure.text;
  EXPECT_LT(failure.at - harmed, kTimeout + kKnown) << failure.text;
  job.group().joinAll();
}

// Ranks of both leave as soon as they are done: nobody sees an error.
TEST_P(EachWayTest, ARankThatIsDoneLeaves) {
  for (const int first : {0, 1}) {
    Job job(eachWay(2, MakeString("leaves", first)),
            [&](Child&, const std::shared_ptr<Context>& context) {
              lastOperations(*context, first, first == 0 ? 64 : 100000);
            });
    job.go();
    for (int process = 0; process < 2; process++) {
      const Failure failure = job.failure(process, seconds(60));
      EXPECT_EQ(failure.type, "none") << failure.text;
    }
    job.group().joinAll();
  }
}

INSTANTIATE_TEST_SUITE_P(, EachWayTest, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "lazy" : "eager";
                         });

// ---- Several ranks on each: shared memory inside, RDMA between. ----

class MixedHostsTest : public TwoHostsTest {
 protected:
  // With the algorithms that GLOO_ALGORITHM is to name.
  Job::Options mixed(const std::string& algorithms) const {
    Job::Options options = this->options(2, algorithms);
    options.device = [algorithms](int) {
      setenv("GLOO_ALGORITHM", algorithms.c_str(), 1);
      transport::DeviceAttr attr;
      attr.tcp.iface = "eth0";
      return transport::CreateDevice(attr);
    };
    return options;
  }

  // Both ranks of this guest end without an error.
  static void expectSuccess(Job& job) {
    for (int process = 0; process < 2; process++) {
      const Failure failure = job.failure(process, std::chrono::seconds(60));
      EXPECT_EQ(failure.type, "none") << failure.text;
    }
    job.group().joinAll();
  }
};

// Of hosts 0, 1, 0, 1.
std::string wrongLinks(const std::shared_ptr<Context>& context) {
  transport::Context& ranks = testing_support::Inside::of(context);
  for (int peer = 0; peer < context->size; peer++) {
    const std::string link =
        dynamic_cast<internal::Channel&>(ranks).linkName(peer);
    const bool isNear = peer % 2 == context->rank % 2;
    if (peer != context->rank && link != (isNear ? "shm" : "ibverbs")) {
      return MakeString("rank ", peer, " is reached over ", link);
    }
  }
  return {};
}

TEST_F(MixedHostsTest, HierarchicalCollectivesGiveWhatTheOracleSays) {
  for (const char* allreduce : {"hierarchical_ring", "hierarchical_doubling"}) {
    Job job(mixed(testing_support::hierarchicalWith(allreduce)),
            [](Child&, const std::shared_ptr<Context>& context) {
              EXPECT_EQ("", wrongLinks(context));
              EXPECT_EQ("", testing_support::checkOnHosts(context, {0, 1, 0, 1},
                                                          {0, 1, 300, 20001}));
            });
    job.go();
    expectSuccess(job);
  }
}

// Each sends half of a vector to the other host; in a ring of all ranks, where
// every neighbour is on the other host, one and a half.
TEST_F(MixedHostsTest, HierarchicalOnesSendLessToTheOtherHost) {
  constexpr const char* kCounter =
      "/sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts";
  std::vector<uint64_t> packets;
  for (const char* algorithm : {"hierarchical_ring", "ring"}) {
    Job job(mixed(MakeString("allreduce=", algorithm)),
            [](Child&, const std::shared_ptr<Context>& context) {
              const testing_support::Call call{1 << 18, 0, false, 0, 1};
              EXPECT_EQ("",
                        testing_support::checkAllreduce<float>(context, call));
            });
    const uint64_t before = numberIn(kCounter);
    job.go();
    expectSuccess(job);
    meet(MakeString("after ", algorithm));
    packets.push_back(numberIn(kCounter) - before);
  }
  EXPECT_GT(packets[0], 0u);
  EXPECT_LT(packets[0], packets[1] * 2 / 3);
}

// The victim is in the middle of collectives, as all are.
TEST_F(MixedHostsTest, AProcessOfOneIsKilledAndAllKnow) {
  constexpr int kVictim = 3;  // process 1 of guest 1
  Job job(mixed(testing_support::hierarchicalWith("hierarchical_ring")),
          [](Child& child, const std::shared_ptr<Context>& context) {
            for (int turn = 0;; turn++) {
              testing_support::compareBits(context, 1000);
              if (turn == 3) {
                child.say("now");
              }
            }
          });
  job.go();
  job.group().expectAll("now");
  meet("busy");
  if (hosts().own == 1) {
    say("harmed");
    job.group().signal(1, SIGKILL);
  } else {
    await("harmed");
  }
  const auto harmed = now();
  for (int process = 0; process < 2 - hosts().own; process++) {
    const Failure failure = job.failure(process, seconds(60));
    EXPECT_EQ(failure.type, "PeerLost") << failure.text;
    EXPECT_TRUE(failure.names(MakeString("rank ", kVictim))) << failure.text;
    EXPECT_LT(failure.at - harmed, kKnown) << failure.text;
  }
  if (hosts().own == 1) {
    job.group().join(1, seconds(5));
  }
  job.group().joinAll();
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
