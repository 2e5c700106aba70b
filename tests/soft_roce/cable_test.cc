// Two processes on rxe1 and rxe2 of a guest, and what happens to the cable
// between these.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "gloo/common/error.h"
#include "gloo/common/string.h"
#include "gloo/transport/ibverbs/device.h"
#include "tests/multiprocess/job.h"
#include "tests/soft_roce/cable.h"
#include "tests/support/hierarchy.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

class CableTest : public ::testing::Test {
 protected:
  // The fault of one test is not the next one's.
  void TearDown() override {
    fault("heal");
    fault("up eth1");
    fault("up eth2");
  }

  // Each rank has an end of the cable.
  static Job::Options options(const transport::ibverbs::attr& base = {}) {
    Job::Options options;
    options.size = 2;
    options.device = [base](int rank) {
      transport::ibverbs::attr attr = base;
      attr.name = rank == 0 ? "rxe1" : "rxe2";
      return transport::ibverbs::CreateDevice(attr);
    };
    return options;
  }
};

// A few messages, "now", and on until it fails.
void exchangeOn(Child& child, const std::shared_ptr<Context>& context) {
  for (uint64_t i = 0; i < 3; i++) {
    exchange(*context, i, 50000);
  }
  child.say("now");
  for (uint64_t i = 3;; i++) {
    exchange(*context, i, i % 2 == 0 ? 100 : 50000);
  }
}

// Rounds of one message in each direction, of bound buffers.
void exchangeBound(Context& context, int slot, size_t bytes) {
  const auto own = static_cast<uint64_t>(context.rank);
  auto& pair = *context.getPair(1 - context.rank);
  std::vector<char> out(bytes);
  std::vector<char> in(bytes);
  auto send = pair.createSendBuffer(slot, out.data(), bytes);
  auto recv = pair.createRecvBuffer(slot, in.data(), bytes);
  for (uint64_t round = 0; round < 4; round++) {
    const auto bytesOfRound = pattern(2 * round + own, bytes);
    std::copy(bytesOfRound.begin(), bytesOfRound.end(), out.begin());
    send->send();
    recv->waitRecv();
    send->waitSend();
    ASSERT_EQ(mismatch(2 * round + 1 - own, in.data(), bytes), bytes) << round;
    exchange(context, 1000 + round, 1);  // both have looked
  }
}

// Each rank puts its bytes into the other one's memory and gets them back.
void putAndGet(const std::shared_ptr<Context>& context, size_t bytes) {
  const int peer = 1 - context->rank;
  const auto own = static_cast<uint64_t>(context->rank);
  auto& inside = testing_support::Inside::of(context);
  std::vector<char> memory(bytes);
  auto target = context->createUnboundBuffer(memory.data(), bytes);
  // The first byte says how many of the others count.
  std::string text = target->getRemoteKey()->serialize();
  text.insert(text.begin(), static_cast<char>(text.size()));
  text.resize(256);
  std::string others(text.size(), '\0');
  auto out = context->createUnboundBuffer(text.data(), text.size());
  auto in = context->createUnboundBuffer(others.data(), others.size());
  in->recv(peer, 2000);
  out->send(peer, 2000);
  in->waitRecv();
  out->waitSend();
  const auto key = inside.deserializeRemoteKey(
      others.substr(1, static_cast<uint8_t>(others[0])));
  auto mine = pattern(own, bytes);
  auto source = context->createUnboundBuffer(mine.data(), bytes);
  source->put(*key, 2001, 0, 0, bytes);
  source->waitSend();
  std::vector<char> again(bytes);
  auto back = context->createUnboundBuffer(again.data(), bytes);
  back->get(*key, 2002, 0, 0, bytes);
  back->waitSend();
  ASSERT_EQ(mismatch(own, again.data(), bytes), bytes);
  exchange(*context, 2003, 1);  // both have put
  ASSERT_EQ(mismatch(1 - own, memory.data(), bytes), bytes);
  exchange(*context, 2004, 1);  // both have got
}

// Packets that came again, or with one missing before.
uint64_t losses() {
  uint64_t all = 0;
  for (const char* device : {"rxe1", "rxe2"}) {
    for (const char* counter : {"duplicate_request", "out_of_seq_request"}) {
      all += numberIn(MakeString("/sys/class/infiniband/", device,
                                 "/ports/1/hw_counters/", counter));
    }
  }
  return all;
}

int64_t missing() { return missingOf({"rxe1", "rxe2"}); }

TEST_F(CableTest, LosesTwoPercent) {
  fault("loss 2");
  const uint64_t before = losses();
  Job job(options(), [](Child&, const std::shared_ptr<Context>& context) {
    for (uint64_t i = 0; i < 40; i++) {
      exchange(*context, i, i % 4 == 0 ? 200000 : 1000);
    }
    exchangeBound(*context, 1, 200000);
    putAndGet(context, 200000);
    const testing_support::Call sum{1 << 15, 0, false, 0, 1};
    EXPECT_EQ("", testing_support::checkAllreduce<float>(context, sum));
  });
  job.go();
  for (int rank = 0; rank < 2; rank++) {
    const Failure failure = job.failure(rank, std::chrono::seconds(60));
    EXPECT_EQ(failure.type, "none") << failure.text;
  }
  job.group().joinAll();
  EXPECT_GT(losses(), before);
}

// Both ranks know in time, with a cause that is no deadline's.
void expectKnown(Job& job, const std::function<void()>& harm) {
  job.go();
  job.group().expectAll("now");
  const auto start = now();
  harm();
  for (int rank = 0; rank < 2; rank++) {
    const Failure failure = job.failure(rank, std::chrono::seconds(40));
    EXPECT_NE(failure.type, "none");
    EXPECT_NE(failure.type, "other") << failure.text;
    EXPECT_NE(failure.type, "Timeout") << failure.text;
    EXPECT_TRUE(failure.names(MakeString("rank ", 1 - rank))) << failure.text;
    EXPECT_LT(failure.at - start, kCutIsKnown) << failure.text;
  }
  job.group().joinAll();
}

TEST_F(CableTest, IsCut) {
  Job job(options(), &exchangeOn);
  expectKnown(job, [] { fault("cut"); });
}

// Who sends finds it, and tells who receives.
TEST_F(CableTest, IsCutWhileOneRankOnlyReceives) {
  Job job(options(), [](Child& child, const std::shared_ptr<Context>& context) {
    exchange(*context, 0, 50000);
    child.say("now");
    std::vector<char> bytes(50000);
    auto buffer = context->createUnboundBuffer(bytes.data(), bytes.size());
    for (;;) {
      if (context->rank == 0) {
        buffer->recv(1, 1);
        buffer->waitRecv();
      } else {
        buffer->send(0, 1);
        buffer->waitSend();
      }
    }
  });
  expectKnown(job, [] { fault("cut"); });
}

// Of two devices of one host; see the end of docs/ibverbs.md. Whatever else
// might notice it would do so in time for the deadline.
TEST_F(CableTest, IsCutWhileNobodySends) {
  transport::ibverbs::attr attr;
  attr.timeout = 15;
  attr.retryCount = 3;  // 0.54 s
  attr.hostTimeout = std::chrono::seconds(1);
  Job job(options(attr),
          [](Child& child, const std::shared_ptr<Context>& context) {
            exchange(*context, 0, 50000);
            child.say("now");
            child.hear();
            context->setTimeout(std::chrono::seconds(3));
            recvFrom(*context, 1 - context->rank, 1, 100);
          });
  job.go();
  job.group().expectAll("now");
  fault("cut");
  job.group().tellAll("cut");
  for (int rank = 0; rank < 2; rank++) {
    const Failure failure = job.failure(rank, std::chrono::seconds(40));
    EXPECT_EQ(failure.type, "Timeout") << failure.text;
  }
  job.group().joinAll();
}

TEST_F(CableTest, APortGoesDown) {
  Job job(options(), &exchangeOn);
  expectKnown(job, [] { takeDown("eth2"); });
}

// Who has lost it says so; the other one may know no more than that nothing
// comes.
TEST_F(CableTest, LosesTheAddressOfAnEndWhileNobodySends) {
  Job job(options(), [](Child& child, const std::shared_ptr<Context>& context) {
    exchange(*context, 0, 50000);
    child.say("now");
    recvFrom(*context, 1 - context->rank, 1, 100);
  });
  job.go();
  job.group().expectAll("now");
  const auto start = now();
  fault("deprive eth2");
  const Failure one = job.failure(1, std::chrono::seconds(40));
  EXPECT_TRUE(one.names("port 1 of RDMA device rxe2 has lost its GID"))
      << one.text;
  EXPECT_TRUE(one.names("10.78.0.2, RoCE v2")) << one.text;
  EXPECT_TRUE(one.names("rank 0")) << one.text;
  EXPECT_LT(one.at - start, std::chrono::seconds(2)) << one.text;
  const Failure other = job.failure(0, std::chrono::seconds(40));
  EXPECT_EQ(other.type, "PeerLost") << other.text;
  EXPECT_LT(other.at - start, kCutIsKnown) << other.text;
  job.group().joinAll();
  fault("address eth2");
}

// As long as queue pairs use the old index, which this Soft-RoCE looks up with
// every request. A later one may go on.
TEST_F(CableTest, AnEndHasItsAddressBackAtAnotherIndex) {
  transport::ibverbs::attr attr;
  attr.gidLostTime = std::chrono::minutes(1);
  Job job(options(attr),
          [](Child& child, const std::shared_ptr<Context>& context) {
            exchange(*context, 0, 50000);
            child.say("now");
            child.hear();
            exchange(*context, 1, 50000);
          });
  job.go();
  job.group().expectAll("now");
  fault("deprive eth2");
  fault("address eth2");
  job.group().tellAll("back");
  for (int rank = 0; rank < 2; rank++) {
    const Failure failure = job.failure(rank, std::chrono::seconds(40));
    EXPECT_TRUE(failure.type == "none" ||
                failure.names("had index 1 when the queue pair was connected"))
        << failure.type << failure.text;
  }
  job.group().joinAll();
}

// With Soft-RoCE some requests may fail at once, or a queue pair may be silent
// for good, if it was sending; or all of them arrive a little later.
TEST_F(CableTest, APortIsSetDownAndUpAgain) {
  SharedFlag over;
  Job job(options(),
          [&](Child& child, const std::shared_ptr<Context>& context) {
            exchange(*context, 0, 50000);
            child.say("now");
            exchangeUntil(over, *context, 50000);
          });
  job.go();
  job.group().expectAll("now");
  const auto start = now();
  takeDown("eth2");
  fault("up eth2");
  over.set();
  const auto took = now() - start;
  for (int rank = 0; rank < 2; rank++) {
    const Failure failure = job.failure(rank, std::chrono::seconds(40));
    EXPECT_TRUE(failure.type == "none" || failure.type == "PeerLost")
        << failure.type << failure.text;
    EXPECT_LT(failure.at - start - took, kCutIsKnown) << failure.text;
  }
  job.group().joinAll();
}

TEST_F(CableTest, APortThatIsDownFromTheStartIsNamed) {
  takeDown("eth2");
  transport::ibverbs::attr attr;
  attr.name = "rxe2";
  std::string text = "it was not refused";
  // The device hears of its interface a moment later.
  for (const auto until = now() + kCutIsKnown; now() < until; ::usleep(10000)) {
    try {
      transport::ibverbs::CreateDevice(attr);
    } catch (const IoException& e) {
      text = e.what();
      break;
    }
  }
  EXPECT_NE(text.find("port 1 of rxe2 is not active"), std::string::npos)
      << text;
  EXPECT_NE(text.find("ip link set dev"), std::string::npos) << text;
}

TEST_F(CableTest, IsUnpluggedForASecond) {
  const int64_t before = missing();  // nothing is on its way
  SharedFlag over;
  Job job(options(),
          [&](Child& child, const std::shared_ptr<Context>& context) {
            exchange(*context, 0, 50000);
            child.say("now");
            exchangeUntil(over, *context, 1000);
          });
  job.go();
  job.group().expectAll("now");
  fault("unplug 1");
  over.set();
  for (int rank = 0; rank < 2; rank++) {
    const Failure failure = job.failure(rank, std::chrono::seconds(20));
    EXPECT_EQ(failure.type, "none") << failure.text;
  }
  job.group().joinAll();
  EXPECT_GT(missing(), before);
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
