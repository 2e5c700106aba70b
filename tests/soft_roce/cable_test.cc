// Two processes on rxe1 and rxe2 of a guest, and what happens to the cable
// between these.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "gloo/common/error.h"
#include "gloo/common/string.h"
#include "gloo/transport/ibverbs/device.h"
#include "tests/multiprocess/job.h"
#include "tests/soft_roce/cable.h"

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

  static Job::Options options() {
    Job::Options options;
    options.size = 2;
    options.device = [](int rank) {
      transport::ibverbs::attr attr;
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

TEST_F(CableTest, LosesTwoPercent) {
  fault("loss 2");
  Job job(options(), [](Child&, const std::shared_ptr<Context>& context) {
    for (uint64_t i = 0; i < 40; i++) {
      exchange(*context, i, i % 4 == 0 ? 200000 : 1000);
    }
  });
  job.go();
  for (int rank = 0; rank < 2; rank++) {
    const Failure failure = job.failure(rank, std::chrono::seconds(60));
    EXPECT_EQ(failure.type, "none") << failure.text;
  }
  job.group().joinAll();
}

// Both ranks know in time, with a cause that is no deadline's.
void expectKnown(Job& job, const std::string& what) {
  job.go();
  job.group().expectAll("now");
  const auto start = now();
  fault(what);
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
  expectKnown(job, "cut");
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
  expectKnown(job, "cut");
}

TEST_F(CableTest, APortGoesDown) {
  Job job(options(), &exchangeOn);
  expectKnown(job, "down eth2");
}

TEST_F(CableTest, APortThatIsDownFromTheStartIsNamed) {
  fault("down eth2");
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
  Job job(options(), [](Child& child, const std::shared_ptr<Context>& context) {
    exchange(*context, 0, 50000);
    child.say("now");
    for (uint64_t i = 1; i < 400; i++) {
      exchange(*context, i, 1000);
    }
    child.say("over");
  });
  job.go();
  job.group().expectAll("now");
  fault("unplug 1");
  job.group().expectAll("over");
  for (int rank = 0; rank < 2; rank++) {
    const Failure failure = job.failure(rank, std::chrono::seconds(20));
    EXPECT_EQ(failure.type, "none") << failure.text;
  }
  job.group().joinAll();
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
