// Operations that do not complete: timed out, too long, or left alone by a peer
// that closes.
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "tests/support/process_group.h"
#include "tests/transport/contract/contract.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using std::chrono::milliseconds;

class EndingTest : public ContractTest {};

// The text of the exception that `call` throws; "" if it throws none.
template <typename Error, typename Call>
std::string textOf(const Call& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return std::string();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_P(EndingTest, ATimeoutNamesTheRank) {
  run(3, [](const ContextPtr& context) {
    if (context->rank != 0) {
      EXPECT_THROW(awaitSignal(context, 0), IoException);  // it fails
      return;
    }
    Message in(context, 100);
    in.buffer->recv(2, 1);
    const auto start = now();
    const std::string text = textOf<TimeoutException>(
        [&] { in.buffer->waitRecv(milliseconds(200)); });
    EXPECT_GE(now() - start, milliseconds(200));
    EXPECT_LT(now() - start, milliseconds(1200) * slowness());
    EXPECT_TRUE(contains(text, "Timed out")) << text;
    EXPECT_TRUE(contains(text, "rank 2")) << text;
    EXPECT_TRUE(contains(text, "rank 0")) << text;
    // The context is closed, and says why.
    const std::string later =
        textOf<IoException>([&] { in.buffer->send(1, 1); });
    EXPECT_TRUE(contains(later, "Timed out")) << later;
  });
}

TEST_P(EndingTest, TheContextsTimeoutIsUsed) {
  run(2, [](const ContextPtr& context) {
    if (context->rank == 1) {
      EXPECT_THROW(awaitSignal(context, 0), IoException);
      return;
    }
    context->setTimeout(milliseconds(150));
    EXPECT_EQ(context->getTimeout(), milliseconds(150));
    Message in(context, 100);
    in.buffer->recv(1, 1);
    const auto start = now();
    EXPECT_THROW(in.buffer->waitRecv(), TimeoutException);
    EXPECT_LT(now() - start, milliseconds(1150) * slowness());
  });
}

// It would be taken for none; only kUnsetTimeout has a meaning.
TEST_P(EndingTest, ANegativeTimeoutIsRefused) {
  run(2, [](const ContextPtr& context) {
    Message in(context, 10);
    Message out(context, pattern(context->rank, 10));
    const int other = 1 - context->rank;
    in.buffer->recv(other, 1);
    out.buffer->send(other, 1);
    const std::string text = textOf<InvalidOperationException>(
        [&] { in.buffer->waitRecv(milliseconds(-5)); });
    EXPECT_TRUE(contains(text, "-5 ms")) << text;
    EXPECT_THROW(out.buffer->waitSend(milliseconds(-2)),
                 InvalidOperationException);
    // And nothing else has happened.
    EXPECT_TRUE(in.buffer->waitRecv(transport::UnboundBuffer::kUnsetTimeout));
    EXPECT_TRUE(out.buffer->waitSend());
  });
}

TEST_P(EndingTest, ADeadlineInThePastStillTakesWhatIsThere) {
  run(2, [](const ContextPtr& context) {
    meet(context);  // both have credits: the message need not wait
    if (context->rank == 1) {
      Message out(context, pattern(1, 10));
      out.buffer->send(0, 1);
      signal(context, 0);
      EXPECT_TRUE(out.buffer->waitSend());
    } else {
      awaitSignal(context, 1);
      Message in(context, 10);
      in.buffer->recv(1, 1);
      EXPECT_TRUE(in.buffer->waitRecv(std::chrono::steady_clock::now() -
                                      milliseconds(1)));
    }
    meet(context);
  });
}

// An error on both sides, and not a byte past the end.
TEST_P(EndingTest, ASendLongerThanItsReceive) {
  for (const bool recvFirst : {true, false}) {
    for (const size_t size : {size_t{101}, size_t{3} << 20}) {
      run(2, [=](const ContextPtr& context) {
        constexpr size_t kRoom = 100;
        const auto sends = [&] {
          Message out(context, std::vector<char>(size, 'x'));
          out.buffer->send(1, 1);
          out.buffer->waitSend();
          // An eager send is complete before the peer compares.
          auto last = context->createUnboundBuffer(nullptr, 0);
          last->recv(1, kSignalSlot + 7);
          last->waitRecv();
        };
        if (context->rank == 0) {
          if (recvFirst) {
            awaitSignal(context, 1);
          }
          const std::string text = textOf<IoException>(sends);
          EXPECT_TRUE(contains(text, std::to_string(size))) << text;
          EXPECT_TRUE(contains(text, "100")) << text;
          EXPECT_TRUE(contains(text, "rank 1")) << text;
        } else {
          std::vector<char> bytes(size + 4096, 'c');
          auto buffer = context->createUnboundBuffer(bytes.data(), kRoom);
          const std::string text = textOf<MismatchException>([&] {
            buffer->recv(0, 1);
            if (recvFirst) {
              signal(context, 0);
            }
            buffer->waitRecv();
          });
          EXPECT_TRUE(contains(text, std::to_string(size))) << text;
          EXPECT_TRUE(contains(text, "100")) << text;
          buffer.reset();
          EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 'c'),
                    static_cast<long>(bytes.size()));
        }
      });
    }
  }
}

TEST_P(EndingTest, WhatWasSentBeforeCloseIsDelivered) {
  run(2, [](const ContextPtr& context) {
    constexpr size_t kSize = 1000;
    if (context->rank == 0) {
      for (int i = 0; i < 20; i++) {
        Message out(context, pattern(i, kSize));
        out.buffer->send(1, i);
        EXPECT_TRUE(out.buffer->waitSend());
      }
      context->getPair(1)->close();
      context->getPair(1)->close();  // idempotent
      return;
    }
    for (int i = 0; i < 20; i++) {
      Message in(context, kSize);
      in.buffer->recv(0, i);
      EXPECT_TRUE(in.buffer->waitRecv());
      EXPECT_TRUE(in.holds(i));
    }
    const std::string text = textOf<IoException>([&] {
      Message in(context, kSize);
      in.buffer->recv(0, 99);
      in.buffer->waitRecv();
    });
    EXPECT_TRUE(contains(text, "rank 0")) << text;
    EXPECT_TRUE(contains(text, "left")) << text;
  });
}

// Against the rule, yet easily done: the order of two members is enough.
TEST_P(EndingTest, BuffersMayBeDestroyedAfterTheirContext) {
  spawnSeats(mode(), 2, [&](Seat& seat) {
    auto device = maker()();
    auto context = device->createContext(seat.rank, 2);
    context->setTimeout(contextTimeout());
    context->createAndConnectAllPairs(seat.store);
    const int peer = 1 - seat.rank;
    std::vector<char> bytes(100000);
    std::vector<char> more(100000);
    auto sent = context->createUnboundBuffer(bytes.data(), bytes.size());
    auto received = context->createUnboundBuffer(more.data(), more.size());
    auto boundOut =
        context->getPair(peer)->createSendBuffer(seat.rank, bytes.data(), 1000);
    auto boundIn =
        context->getPair(peer)->createRecvBuffer(peer, more.data(), 1000);
    received->recv(peer, 1);
    sent->send(peer, 1);
    EXPECT_TRUE(received->waitRecv());
    EXPECT_TRUE(sent->waitSend());
    received->recv(peer, 2);  // never served
    // Not by a message: a peer that leaves ends what the receive waits for, and
    // with it the context.
    seat.store->set("done" + std::to_string(seat.rank), {1});
    seat.store->wait({"done" + std::to_string(peer)}, contextTimeout());
    context.reset();
    device.reset();
  });
}

// A rank that has nothing more to do may go while others work.
TEST_P(EndingTest, ARankLeavesWhileOthersGoOn) {
  run(3, [](const ContextPtr& context) {
    meet(context);
    if (context->rank == 0) {
      return;
    }
    const int peer = 3 - context->rank;
    for (int i = 0; i < 100; i++) {
      Message out(context, pattern(i, 10000));
      Message in(context, 10000);
      in.buffer->recv(peer, i);
      out.buffer->send(peer, i);
      EXPECT_TRUE(in.buffer->waitRecv());
      EXPECT_TRUE(out.buffer->waitSend());
      EXPECT_TRUE(in.holds(i));
    }
  });
}

GLOO_CONTRACT_SUITE(EndingTest);

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
