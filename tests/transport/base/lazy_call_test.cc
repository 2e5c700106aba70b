// Calls for pairs that are connected at their first use, and what may come of
// them.
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <sys/resource.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gloo/internal/channel.h"
#include "gloo/internal/mesh.h"
#include "gloo/internal/profile.h"
#include "tests/support/fake_link.h"
#include "tests/transport/base/loopback.h"
#include "tests/transport/contract/contract.h"
#include "transport/base/connector.h"
#include "transport/base/lifeline.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace transport::base;  // NOLINT: everything here is about it
using std::chrono::milliseconds;

FakeOptions lazyOptions() {
  FakeOptions options;
  options.lazy = true;
  return options;
}

TEST(LazyCallTest, WhoIsPutOffCallsAgain) {
  const FakeOptions options = lazyOptions();
  options.watch->putOff = 3;
  spawn(Mode::kThreads, fakeDevices(options), 2, meet);
  EXPECT_LT(options.watch->putOff, 0);
}

// Of a receive from rank 1, or from any rank.
std::string complaintOfRecv(const ContextPtr& context,
                            const std::vector<int>& sources) {
  try {
    Message in(context, 8);
    in.buffer->recv(sources, 1);
    in.buffer->waitRecv();
  } catch (const IoException& e) {
    return e.what();
  }
  return "";
}

TEST(LazyCallTest, WhatCannotBePreparedFailsWhoWaits) {
  for (const auto& sources : {std::vector<int>{1}, std::vector<int>{1, 2}}) {
    const FakeOptions options = lazyOptions();
    spawnSeats(Mode::kThreads, 3, [&](Seat& seat) {
      auto context = fakeDevices(options)()->createContext(seat.rank, 3);
      context->setTimeout(contextTimeout());
      context->createAndConnectAllPairs(seat.store);
      seat.store->set(std::to_string(seat.rank), {1});
      seat.store->wait({"0", "1", "2"}, contextTimeout());
      if (seat.rank == 0) {
        options.watch->unprepared = 1;
        for (int i = 0; i < 2; i++) {
          const std::string why = complaintOfRecv(context, sources);
          EXPECT_NE(why.find("cannot make a link to rank 1: no link today"),
                    std::string::npos)
              << why;
        }
        seat.store->set("done", {1});
      }
      seat.store->wait({"done"}, contextTimeout());
    });
  }
}

// A rank that greets, and answers calls for a pair as the test says.
class Answerer final : public Party {
 public:
  using Spoil = std::function<void(Hello&)>;

  Answerer(int rank, uint64_t nonce, const Spoil& spoil)
      : rank_(rank), nonce_(nonce), spoil_(spoil) {}

  Hello onHello(const Hello& theirs) override {
    Hello mine;
    mine.purpose = theirs.purpose;
    mine.verdict = Verdict::kAccepted;
    mine.srcRank = rank_;
    mine.dstRank = theirs.srcRank;
    mine.size = theirs.size;
    mine.srcNonce = nonce_;
    mine.dstNonce = theirs.srcNonce;
    mine.linkKind = theirs.linkKind;
    if (theirs.purpose == Purpose::kPair) {
      spoil_(mine);
    }
    return mine;
  }
  void onConnected(const Hello&, UniqueFd, uint64_t) override {}
  void onConnectFailed(uint64_t, Failure, const std::string&) override {}

 private:
  const int rank_;
  const uint64_t nonce_;
  const Spoil spoil_;
};

using Wait = std::function<std::string(const ContextPtr&)>;

std::string waitForOne(const ContextPtr& context) {
  return complaintOfRecv(context, {1});
}

// What rank 0 of 3 says that waits for rank 1, whose answer is spoilt; or which
// hangs up instead, the first times.
std::string complaintOfAnswer(
    const Answerer::Spoil& spoil, int hangsUp = 0,
    const Wait& wait = waitForOne, const FakeOptions& options = lazyOptions(),
    const std::function<void()>& beforeComplete = [] {}) {
  ProgressDomain domain;
  std::unique_ptr<Connector> connector;
  Answerer* asked = nullptr;
  Answerer one(1, 101, [&](Hello& answer) {
    if (hangsUp-- > 0) {
      connector->removeParty(101);
      connector->addParty(101, *asked);
    }
    spoil(answer);
  });
  asked = &one;
  Answerer two(2, 102, [](Hello&) {});
  {
    const auto lock = domain.lock();
    connector = std::make_unique<Connector>(domain, loopback());
    connector->addParty(101, one);
    connector->addParty(102, two);
  }
  std::string why;
  {
    const auto context = fakeDevices(options)()->createContext(0, 3);
    context->setTimeout(contextTimeout());
    auto& mesh = internal::Mesh::of(*context);
    for (int rank = 1; rank < 3; rank++) {
      AddressRecord record = decodeAddress(mesh.address().bytes);
      record.rank = rank;
      record.nonce = 100 + static_cast<uint64_t>(rank);
      record.port = connector->endpoint().port();
      auto peer = mesh.decode(encode(record));
      mesh.addPeer(peer);
    }
    while (!mesh.allConnected()) {
      mesh.progress(milliseconds(10));
    }
    beforeComplete();
    mesh.complete(77, std::make_shared<const internal::Profile>());
    why = wait(context);
  }
  const auto lock = domain.lock();
  connector.reset();
  return why;
}

void expectBroken(const std::string& why, const std::string& how) {
  EXPECT_NE(why.find("rank 1 gave a broken answer"), std::string::npos) << why;
  EXPECT_NE(why.find(how), std::string::npos) << why;
}

TEST(LazyCallTest, AnAnswerOfAnotherRankFailsWhoWaits) {
  for (const int rank : {0, 2, 3, -1}) {
    expectBroken(complaintOfAnswer([&](Hello& answer) {
                   answer.srcRank = rank;
                   answer.blob.resize(8);
                 }),
                 "it is of rank " + std::to_string(rank));
  }
}

TEST(LazyCallTest, AnAnswerThatIsNoneFailsWhoWaits) {
  expectBroken(complaintOfAnswer([](Hello& answer) { answer.version = 999; }),
               "protocol version 999");
  expectBroken(complaintOfAnswer([](Hello& answer) { answer.srcNonce++; }),
               "comes from another process");
}

// It has more callers than it can greet, or dies: the next call tells.
TEST(LazyCallTest, WhoIsHungUpOnCallsAgain) {
  int asked = 0;
  expectBroken(complaintOfAnswer(
                   [&](Hello& answer) {
                     asked++;
                     answer.srcRank = 2;
                   },
                   3),
               "it is of rank 2");
  EXPECT_EQ(asked, 4);
}

// Nobody else is to blame.
TEST(LazyCallTest, WithoutADescriptorForACallOneSaysSo) {
  const std::string why = complaintOfAnswer(
      [](Hello&) {}, 0,
      [](const ContextPtr& context) {
        rlimit old{};
        EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
        const rlimit none{0, old.rlim_max};
        EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
        const std::string complaint = complaintOfRecv(context, {1});
        EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
        EXPECT_EQ(internal::Channel::of(*context).failure()->culprit, 0);
        return complaint;
      });
  EXPECT_NE(why.find("rank 0 cannot call rank 1"), std::string::npos) << why;
  EXPECT_NE(why.find("ulimit -n"), std::string::npos) << why;
}

// What becomes of a call, for who makes it.
struct Caller final : Party {
  Hello onHello(const Hello&) override { return {}; }
  void onConnected(const Hello&, UniqueFd, uint64_t) override { over = true; }
  void onConnectFailed(uint64_t, Failure why, const std::string&) override {
    over = true;
    failure = why;
  }
  bool over = false;
  std::optional<Failure> failure;
};

// It is nobody else's affair, who may drive the device meanwhile.
TEST(LazyCallTest, WithoutMemoryForACallersLinkTheContextSaysSo) {
  const FakeOptions options = lazyOptions();
  const auto call = [&](const ContextPtr& context) {
    const AddressRecord to =
        decodeAddress(internal::Mesh::of(*context).address().bytes);
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in.sin_port = htons(to.port);
    Hello hello;
    hello.srcRank = 1;
    hello.dstRank = 0;
    hello.size = 3;
    hello.srcNonce = 101;
    hello.dstNonce = to.nonce;
    hello.linkKind = name(options.shape);
    options.watch->noMemoryToPrepare = 1;
    Caller caller;
    ProgressDomain domain;
    {
      auto lock = domain.lock();
      Connector connector(domain, loopback());
      connector.addParty(101, caller);
      connector.connect(101, {reinterpret_cast<sockaddr*>(&in), sizeof(in)},
                        hello, 1, contextTimeout());
      domain.wait(
          lock, [&] { return caller.over; }, Deadline::after(contextTimeout()));
    }
    EXPECT_EQ(caller.failure, Party::Failure::kPassed);  // it hears why later
    return complaintOfRecv(context, {1});
  };
  const std::string why = complaintOfAnswer([](Hello&) {}, 0, call, options);
  EXPECT_NE(why.find("rank 0 was out of memory for a call of rank 1"),
            std::string::npos)
      << why;
}

TEST(LazyCallTest, WithoutMemoryForTheNextCallTheContextSaysSo) {
  const FakeOptions options = lazyOptions();
  const std::string why = complaintOfAnswer(
      [&](Hello& answer) {
        answer.verdict = Verdict::kUnknown;  // it may call again
        options.watch->noMemoryToPrepare = 1;
      },
      0, waitForOne, options);
  EXPECT_NE(why.find("rank 0 was out of memory for a call to rank 1"),
            std::string::npos)
      << why;
}

// The ranks here take lifelines, and never regard them as open.
std::string complaintOfLifelines(const ContextPtr& context, int culprit) {
  std::string complaint;
  try {
    internal::Mesh::of(*context).share(Deadline::after(milliseconds(300)));
  } catch (const TimeoutException& e) {
    complaint = e.what();
    EXPECT_EQ(internal::Channel::of(*context).failure()->culprit, culprit);
  }
  EXPECT_NE(complaint.find("no lifeline to ranks 1-2"), std::string::npos)
      << complaint;
  return complaint;
}

TEST(LazyCallTest, WhoDoesNotWatchOverOneIsNamed) {
  complaintOfAnswer([](Hello&) {}, 0,
                    [](const ContextPtr& context) {
                      return complaintOfLifelines(context, 1);
                    });
}

TEST(LazyCallTest, WithoutADescriptorForALifelineOneSaysSo) {
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  const std::string why = complaintOfAnswer(
      [](Hello&) {}, 0,
      [&](const ContextPtr& context) {
        const std::string complaint = complaintOfLifelines(context, 0);
        EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
        return complaint;
      },
      lazyOptions(),
      [&] {
        Lifelines::instance();  // has descriptors of its own
        const rlimit none{0, old.rlim_max};
        EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
      });
  EXPECT_NE(why.find("it cannot call rank "), std::string::npos) << why;
  EXPECT_NE(why.find("ulimit -n"), std::string::npos) << why;
}

TEST(LazyCallTest, AnAnswerWithoutALinkFailsWhoWaits) {
  const std::string why =
      complaintOfAnswer([](Hello& answer) { answer.blob = {'x'}; });
  EXPECT_NE(why.find("cannot make a link to rank 1: fake link"),
            std::string::npos)
      << why;
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
