#include "tests/multiprocess/job.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "gloo/common/error.h"
#include "gloo/common/string.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/file_store.h"
#include "tests/support/transports.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

std::string typeOf(const std::exception& e) {
  if (dynamic_cast<const TimeoutException*>(&e) != nullptr) {
    return "Timeout";
  }
  if (dynamic_cast<const PeerLostException*>(&e) != nullptr) {
    return "PeerLost";
  }
  return dynamic_cast<const IoException*>(&e) != nullptr ? "Io" : "other";
}

// All but the stopped victim meet their deadlines, and somebody says who it is.
void expectStop(Job& job, int victim, std::chrono::nanoseconds stopped,
                std::chrono::milliseconds timeout) {
  for (int rank = 0; rank < job.group().size(); rank++) {
    if (rank != victim) {
      const Failure failure = job.failure(rank, std::chrono::seconds(20));
      EXPECT_TRUE(failure.names("Timed out")) << failure.text;
      EXPECT_TRUE(failure.names(MakeString("rank ", victim))) << failure.text;
      EXPECT_LT(failure.at - stopped,
                timeout + std::chrono::seconds(1) * slowness())
          << failure.text;
    }
  }
  job.group().signal(victim, SIGKILL);
  job.group().join(victim, std::chrono::seconds(5));
  job.group().joinAll(std::chrono::seconds(20));
}

}  // namespace

Job::Job(const Options& options, const Body& body) {
  group_ = std::make_unique<ProcessGroup>(
      options.size, [&](Child& child) { runRank(child, options, body); });
}

void Job::runRank(Child& child, const Options& options, const Body& body) {
  const int rank =
      options.rankOf != nullptr ? options.rankOf(child.rank) : child.rank;
  const int size = options.total > 0 ? options.total : child.size;
  std::shared_ptr<rendezvous::Store> store =
      std::make_shared<rendezvous::FileStore>(directory_.path());
  if (options.wrap != nullptr) {
    store = options.wrap(rank, store);
  }
  auto context = std::make_shared<rendezvous::Context>(rank, size);
  context->setTimeout(options.timeout);
  auto device = options.device != nullptr
                    ? options.device(rank)
                    : chosenTransport(options.lazy).make();
  const auto began = now().count();
  const auto telling = [began](const std::string& how) {
    return MakeString(began, " ", now().count(), " ", how);
  };
  std::string said = telling("none");
  try {
    context->connectFullMesh(store, device);
    if (options.onConnected != nullptr) {
      options.onConnected(rank);
    }
    child.say("connected");
    child.hear();
    body(child, context);
  } catch (const std::exception& e) {
    said = telling(MakeString(typeOf(e), " ", e.what()));
  }
  child.say(said);
}

void Job::go() {
  group_->expectAll("connected");
  group_->tellAll("go");
}

Failure Job::failure(int rank, std::chrono::milliseconds limit) {
  return parse(group_->hear(rank, limit));
}

Failure Job::failureWherever(int rank) {
  constexpr std::chrono::seconds kLimit(40);
  std::string said = group_->hear(rank, kLimit);
  if (said == "connected") {
    group_->tell(rank, "go");
    said = group_->hear(rank, kLimit);
  }
  return parse(said);
}

Failure Job::parse(const std::string& said) {
  Failure failure;
  std::istringstream line(said);
  int64_t began = 0;
  int64_t at = 0;
  line >> began >> at >> failure.type;
  std::getline(line, failure.text);
  failure.began = std::chrono::nanoseconds(began);
  failure.at = std::chrono::nanoseconds(at);
  return failure;
}

std::chrono::nanoseconds Job::expectDeath(int victim,
                                          std::chrono::nanoseconds killed) {
  std::chrono::nanoseconds slowest{0};
  for (int rank = 0; rank < group_->size(); rank++) {
    if (rank == victim) {
      continue;
    }
    const Failure failure = this->failure(rank, std::chrono::seconds(20));
    EXPECT_EQ(failure.type, "PeerLost") << "rank " << rank << failure.text;
    EXPECT_TRUE(failure.names(MakeString("rank ", rank))) << failure.text;
    EXPECT_TRUE(failure.names(MakeString("rank ", victim))) << failure.text;
    slowest = std::max(slowest, failure.at - killed);
  }
  EXPECT_LT(slowest, std::chrono::seconds(1) * slowness());
  EXPECT_TRUE(slowest < std::chrono::seconds(3) * slowness())
      << "more than late: something hung";
  EXPECT_TRUE(group_->join(victim, std::chrono::seconds(5)).killedBy(9));
  group_->joinAll(std::chrono::seconds(20));
  return slowest;
}

void harmAtRandom(uint64_t seed, bool stop, Job::Options options,
                  const Job::Body& body) {
  SCOPED_TRACE(MakeString("seed ", seed, stop ? ", stop" : ", kill"));
  std::mt19937_64 random(seed);
  options.size = 2 + static_cast<int>(random() % 3);
  const int victim =
      static_cast<int>(random() % static_cast<uint64_t>(options.size));
  // Short only once all are connected: that takes what it takes.
  const std::chrono::milliseconds timeout =
      stop ? std::chrono::milliseconds(300 * patience()) : options.timeout;
  Job job(options, [&](Child& child, const std::shared_ptr<Context>& context) {
    context->setTimeout(timeout);
    body(child, context);
  });
  job.go();
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
  const auto harmed = now();
  job.group().signal(victim, stop ? SIGSTOP : SIGKILL);
  if (stop) {
    expectStop(job, victim, harmed, timeout);
  } else {
    job.expectDeath(victim, harmed);
  }
}

void sendTo(Context& context, int peer, uint64_t slot, size_t bytes) {
  std::vector<char> memory(bytes, 's');
  auto buffer = context.createUnboundBuffer(memory.data(), bytes);
  buffer->send(peer, slot);
  buffer->waitSend();
}

void recvFrom(Context& context, int peer, uint64_t slot, size_t bytes) {
  std::vector<char> memory(bytes);
  auto buffer = context.createUnboundBuffer(memory.data(), bytes);
  buffer->recv(peer, slot);
  buffer->waitRecv();
}

void exchangeRing(Context& context, uint64_t slot, size_t bytes) {
  std::vector<char> out(bytes, 'o');
  std::vector<char> in(bytes);
  auto send = context.createUnboundBuffer(out.data(), bytes);
  auto recv = context.createUnboundBuffer(in.data(), bytes);
  recv->recv((context.rank + context.size - 1) % context.size, slot);
  send->send((context.rank + 1) % context.size, slot);
  recv->waitRecv();
  send->waitSend();
}

void lastOperations(Context& context, int first, size_t bytes) {
  for (uint64_t i = 0; i < 3; i++) {
    exchangeRing(context, i, bytes);
  }
  if (context.rank == first) {
    for (int peer = 0; peer < context.size; peer++) {
      if (peer != first) {
        sendTo(context, peer, 100, bytes);
      }
    }
    return;
  }
  // among those that stay
  const int next = (context.rank + 1) % context.size == first
                       ? (context.rank + 2) % context.size
                       : (context.rank + 1) % context.size;
  std::vector<char> out(1000);
  auto buffer = context.createUnboundBuffer(out.data(), out.size());
  buffer->send(next, 200);
  recvFrom(context, first, 100, bytes);
  const int before = (context.rank + context.size - 1) % context.size;
  recvFrom(
      context,
      before == first ? (before + context.size - 1) % context.size : before,
      200, 1000);
  buffer->waitSend();
}

}  // namespace test
GLOO_NAMESPACE_END
