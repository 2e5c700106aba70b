// A process is stopped: that is not death. The error comes at the deadline and
// says whom it was waiting for.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "gloo/broadcast.h"
#include "gloo/common/string.h"
#include "gloo/rendezvous/file_store.h"
#include "tests/multiprocess/job.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

constexpr int kVictim = 1;

// How it ends: by nothing else.
void killVictim(Job& job) {
  job.group().signal(kVictim, SIGKILL);
  const Outcome outcome = job.group().join(kVictim, std::chrono::seconds(5));
  EXPECT_TRUE(outcome.killedBy(SIGKILL)) << outcome.str();
}

void stopWhile(const Job::Body& others) {
  // Only once all are connected: that takes what it takes.
  const auto timeout = std::chrono::milliseconds(1000) * patience();
  Job job({}, [&](Child& child, const std::shared_ptr<Context>& context) {
    context->setTimeout(timeout);
    if (child.rank == kVictim) {
      child.say("now");
      child.hear();
    } else {
      child.hear();
      others(child, context);
    }
  });
  job.go();
  job.group().expect(kVictim, "now");
  job.group().signal(kVictim, SIGSTOP);
  const auto stopped = now();
  job.group().tell(0, "stopped");
  job.group().tell(2, "stopped");
  for (const int rank : {0, 2}) {
    const Failure failure = job.failure(rank, std::chrono::seconds(20));
    EXPECT_EQ(failure.type, "Timeout") << failure.text;
    EXPECT_TRUE(failure.names("Timed out")) << failure.text;
    EXPECT_TRUE(failure.names("rank 1")) << failure.text;
    EXPECT_TRUE(failure.names(MakeString("rank ", rank))) << failure.text;
    EXPECT_LT(failure.at - stopped,
              timeout + std::chrono::seconds(1) * slowness());
    EXPECT_GT(failure.at - stopped, timeout - std::chrono::milliseconds(100));
  }
  // Also the destructors of the others end in time.
  for (const int rank : {0, 2}) {
    const Outcome outcome = job.group().join(rank, std::chrono::seconds(4));
    EXPECT_TRUE(outcome.exitedWith(0)) << outcome.str();
  }
  killVictim(job);
}

TEST(StoppedTest, WhileOthersReceiveFromIt) {
  stopWhile([](Child&, const std::shared_ptr<Context>& context) {
    recvFrom(*context, kVictim, 1, 100);
  });
}

TEST(StoppedTest, WhileOthersSendToIt) {
  stopWhile([](Child&, const std::shared_ptr<Context>& context) {
    // More than any socket takes, and little enough to be written quickly.
    sendTo(*context, kVictim, 1, 16 << 20);
  });
}

// What it waits for came while it was stopped: nobody is late.
TEST(StoppedTest, PastTheDeadlineOfWhatHasCome) {
  Job::Options options;
  options.timeout = std::chrono::seconds(2) * slowness();
  Job job(options, [](Child& child, const std::shared_ptr<Context>& context) {
    if (child.rank != kVictim) {
      child.hear();
    }
    if (child.rank == kVictim) {
      child.say("now");
    }
    std::vector<int> value{child.rank == 0 ? 17 : 0};
    BroadcastOptions opts(context);
    opts.setOutput(value.data(), 1);
    opts.setRoot(0);
    broadcast(opts);
    child.say(MakeString("has ", value[0]));
    child.hear();
  });
  job.go();
  job.group().expect(kVictim, "now");
  std::this_thread::sleep_for(std::chrono::milliseconds(400));  // it sleeps
  job.group().signal(kVictim, SIGSTOP);
  job.group().tell(0, "stopped");
  job.group().tell(2, "stopped");
  job.group().expect(0, "has 17");
  job.group().expect(2, "has 17");
  std::this_thread::sleep_for(options.timeout);
  job.group().signal(kVictim, SIGCONT);
  job.group().expect(kVictim, "has 17");
  job.group().tellAll("go on");
  for (const int rank : {0, 1, 2}) {
    EXPECT_EQ(job.failure(rank, std::chrono::seconds(20)).type, "none");
  }
  job.group().joinAll();
}

// A receive that the victim may write to is taken back: after 2 s the context
// is given up, and the error says what was to end, and who did not answer.
TEST(StoppedTest, WhenAskedToGiveAReceiveBack) {
  Job job({}, [](Child& child, const std::shared_ptr<Context>& context) {
    child.hear();
    if (child.rank == 0) {
      // Of which one is advertised, whatever the transport.
      for (const size_t size : {100000, 1000000}) {
        std::vector<char> bytes(size);
        auto buffer = context->createUnboundBuffer(bytes.data(), size);
        buffer->recv(kVictim, 5);
        buffer->abortWaitRecv();
        buffer->waitRecv();
      }
    }
  });
  job.go();
  job.group().signal(kVictim, SIGSTOP);
  job.group().tell(0, "stopped");
  const Failure failure = job.failure(0, std::chrono::seconds(20));
  EXPECT_EQ(failure.type, "Io") << failure.text;
  EXPECT_TRUE(
      failure.names("rank 0: abort of a recv from rank 1, slot 0x5, 0 of 1"))
      << failure.text;
  EXPECT_TRUE(failure.names("no answer within 2000 ms")) << failure.text;
  job.group().tell(2, "stopped");
  killVictim(job);
  job.group().joinAll();
}

// The victim stops as soon as its address is public.
class StoppingStore : public rendezvous::FileStore {
 public:
  using FileStore::FileStore;
  void set(const std::string& key, const std::vector<char>& data) override {
    FileStore::set(key, data);
    ::raise(SIGSTOP);
  }
};

// Ranks 0 and 1 look at their own records alone once they have found each
// other. Then the victim stops; rank 2 comes afterwards.
class SettlingStore : public rendezvous::FileStore {
 public:
  SettlingStore(std::string path, int rank)
      : FileStore(path), path_(std::move(path)), rank_(rank) {
    while (rank_ == 2 && !std::filesystem::exists(path_ + "/stopped")) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  std::vector<std::optional<std::vector<char>>> peek(
      const std::vector<std::string>& keys) override {
    const bool settled = keys == std::vector{MakeString("gloo.rank.", rank_)};
    if (settled && rank_ == 0) {
      std::ofstream(path_ + "/settled");
    }
    if (settled && rank_ == kVictim &&
        std::filesystem::exists(path_ + "/settled")) {
      std::ofstream(path_ + "/stopped");
      ::raise(SIGSTOP);
    }
    return FileStore::peek(keys);
  }

 private:
  const std::string path_;
  const int rank_;
};

// The others give up by the deadline plus a second, and say who it was.
void expectStopOnConnecting(Job::Options options) {
  options.timeout = std::chrono::milliseconds(1000) * patience();
  Job job(options, [](Child&, const std::shared_ptr<Context>&) {});
  for (const int rank : {0, 2}) {
    const Failure failure = job.failure(rank, std::chrono::seconds(20));
    EXPECT_TRUE(failure.names("Timed out")) << failure.text;
    EXPECT_TRUE(failure.names(MakeString("rank ", kVictim, ":")) ||
                failure.names(MakeString("life from rank ", kVictim)))
        << failure.text;
    if (rank == 0) {
      EXPECT_LT(failure.at - failure.began,
                options.timeout + std::chrono::seconds(1) * slowness());
    }
  }
  killVictim(job);
  job.group().joinAll(std::chrono::seconds(20));
}

class StoppedOnConnectingTest : public ::testing::TestWithParam<bool> {};

TEST_P(StoppedOnConnectingTest, WhenItsAddressIsPublic) {
  ScratchDirectory directory;
  Job::Options options;
  options.lazy = GetParam();
  options.wrap = [&](int rank, std::shared_ptr<rendezvous::Store>)
      -> std::shared_ptr<rendezvous::Store> {
    if (rank == kVictim) {
      return std::make_shared<StoppingStore>(directory.path());
    }
    return std::make_shared<rendezvous::FileStore>(directory.path());
  };
  expectStopOnConnecting(options);
}

TEST_P(StoppedOnConnectingTest, WhileOneIsMissing) {
  ScratchDirectory directory;
  Job::Options options;
  options.lazy = GetParam();
  options.wrap = [&](int rank, std::shared_ptr<rendezvous::Store>) {
    return std::make_shared<SettlingStore>(directory.path(), rank);
  };
  expectStopOnConnecting(options);
}

INSTANTIATE_TEST_SUITE_P(, StoppedOnConnectingTest, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "lazy" : "eager";
                         });

// However many stopped: one farewell to all of them.
TEST(StoppedTest, WhileAnotherClosesItsConnections) {
  Job::Options options;
  options.size = 5;
  Job job(options, [](Child& child, const std::shared_ptr<Context>& context) {
    child.say("now");
    child.hear();
    context->closeConnections();
    child.say("closed");
  });
  job.go();
  job.group().expectAll("now");
  for (int rank = 1; rank < options.size; rank++) {
    job.group().signal(rank, SIGSTOP);
  }
  const auto stopped = now();
  job.group().tell(0, "stopped");
  EXPECT_EQ(job.group().hear(0, std::chrono::seconds(20)), "closed");
  const Outcome outcome = job.group().join(0, std::chrono::seconds(20));
  EXPECT_TRUE(outcome.exitedWith(0)) << outcome.str();
  EXPECT_LT(now() - stopped, std::chrono::seconds(3) * slowness());
  for (int rank = 1; rank < options.size; rank++) {
    job.group().signal(rank, SIGKILL);
    job.group().join(rank, std::chrono::seconds(5));
  }
}

// A rank that comes back after a pause shorter than the deadline was only slow,
// though it has read nothing meanwhile of what was sent to it.
TEST(StoppedTest, AndGoesOnInTime) {
  // More than any socket takes.
  constexpr size_t kBytes = 16 << 20;
  Job::Options options;
  options.size = 2;
  options.timeout = std::chrono::seconds(20) * patience();
  Job job(options, [](Child& child, const std::shared_ptr<Context>& context) {
    for (uint64_t i = 0; i < 10; i++) {
      exchangeRing(*context, i, 300000);
    }
    if (child.rank == kVictim) {
      std::string bytes(kBytes, '-');
      auto buffer = context->createUnboundBuffer(bytes.data(), kBytes);
      buffer->recv(0, 10);
      child.say("now");
      child.hear();
      buffer->waitRecv();
      EXPECT_EQ(bytes, std::string(kBytes, 's'));
    } else {
      child.hear();
      sendTo(*context, kVictim, 10, kBytes);
    }
    for (uint64_t i = 11; i < 50; i++) {
      exchangeRing(*context, i, 300000);
    }
  });
  job.go();
  job.group().expect(kVictim, "now");
  job.group().signal(kVictim, SIGSTOP);
  job.group().tell(0, "stopped");
  EXPECT_EQ(job.group().hear(0, std::chrono::milliseconds(1500)), "");
  job.group().signal(kVictim, SIGCONT);
  job.group().tell(kVictim, "go on");
  for (int rank = 0; rank < 2; rank++) {
    const Failure failure = job.failure(rank, std::chrono::seconds(20));
    EXPECT_EQ(failure.type, "none") << failure.text;
  }
  job.group().joinAll();
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
