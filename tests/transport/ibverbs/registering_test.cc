// Registering much memory takes long: nobody else waits for it meanwhile.
#include <gmock/gmock.h>

#include <cerrno>
#include <future>

#include "gloo/internal/channel.h"
#include "tests/transport/contract/contract.h"
#include "tests/transport/ibverbs/fake_devices.h"
#include "transport/base/context.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using testing::HasSubstr;

constexpr size_t kLong = 4 << 20;
constexpr size_t kHeld = 2 << 20;  // so much and more: what is held

class VerbsRegisteringTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(mistakesOfFakeVerbs(), ""); }

  using Step = std::function<void(const ContextPtr&)>;
  // Rank 0's `slow` registers from before `meanwhile` until that is over, then
  // it does `after`. Rank 1 does `other`.
  static void run(const Step& slow, const Step& meanwhile, const Step& after,
                  const Step& other);
  // Rank 0's context is closed while `slow` registers, which throws.
  static void expectClosedMeanwhile(
      const std::function<void(transport::UnboundBuffer&)>& slow);
};

void VerbsRegisteringTest::run(const Step& slow, const Step& meanwhile,
                               const Step& after, const Step& other) {
  spawn(Mode::kThreads, fakeVerbsDevices(plainDevices()), 2,
        [&](const ContextPtr& context) {
          meet(context);
          if (context->rank == 1) {
            other(context);
            return;
          }
          fakeVerbs().holdRegistrations(kHeld);
          auto started = std::async(std::launch::async, [&] { slow(context); });
          fakeVerbs().awaitHeldRegistration();
          meanwhile(context);
          fakeVerbs().holdRegistrations(0);
          started.get();
          after(context);
        });
}

void VerbsRegisteringTest::expectClosedMeanwhile(
    const std::function<void(transport::UnboundBuffer&)>& slow) {
  std::vector<char> bytes(kLong);
  BufferPtr buffer;
  std::promise<void> over;  // else rank 1 would have left
  run(
      [&](const ContextPtr& context) {
        buffer = context->createUnboundBuffer(bytes.data(), kLong);
        EXPECT_THROW(slow(*buffer), IoException);
      },
      [](const ContextPtr& context) {
        dynamic_cast<transport::base::Context&>(*context).close();
      },
      [&](const ContextPtr&) {
        buffer.reset();
        over.set_value();
      },
      [&](const ContextPtr&) { over.get_future().wait(); });
}

// Both ways, with each rank's answer.
void pingPong(const ContextPtr& context) {
  const int peer = 1 - context->rank;
  for (int i = 0; i < 3; i++) {
    if (context->rank == 0) {
      signal(context, peer);
      awaitSignal(context, peer);
    } else {
      awaitSignal(context, peer);
      signal(context, peer);
    }
  }
}

TEST_F(VerbsRegisteringTest, OthersSendAndReceiveMeanwhile) {
  std::vector<char> bytes(kLong);
  BufferPtr buffer;
  run(
      [&](const ContextPtr& context) {
        buffer = context->createUnboundBuffer(bytes.data(), kLong);
        buffer->recv(1, 1);
      },
      &pingPong,
      [&](const ContextPtr&) {
        EXPECT_TRUE(buffer->waitRecv());
        EXPECT_EQ(mismatch(5, bytes.data(), kLong), kLong);
        buffer.reset();
      },
      [](const ContextPtr& context) {
        pingPong(context);
        Message out(context, pattern(5, kLong));
        out.buffer->send(0, 1);
        EXPECT_TRUE(out.buffer->waitSend());
      });
}

void expectReceived(const ContextPtr& context, const internal::Operation& op,
                    const std::vector<char>& bytes) {
  EXPECT_TRUE(internal::Channel::of(*context).waitUntil(
      [&] { return !op.pending(); }, Deadline()));
  EXPECT_EQ(mismatch(5, bytes.data(), kLong), kLong);
}

// With what expectReceived() looks for.
void answer(const ContextPtr& context) {
  pingPong(context);
  Message out(context, pattern(5, kLong));
  out.buffer->send(0, 1);
  EXPECT_TRUE(out.buffer->waitSend());
}

// As collectives do.
TEST_F(VerbsRegisteringTest, AndWhileACollectivesMemoryIsRegistered) {
  std::vector<char> bytes(kLong);
  internal::Operation op;
  std::unique_ptr<internal::KeptMemory> kept;
  run(
      [&](const ContextPtr& context) {
        auto& channel = internal::Channel::of(*context);
        kept = channel.keep(bytes.data(), kLong, false);
        channel.postRecv(op, 1, 1, bytes.data(), kLong, 0);
      },
      &pingPong,
      [&](const ContextPtr& context) {
        expectReceived(context, op, bytes);
        kept.reset();
      },
      &answer);
}

TEST_F(VerbsRegisteringTest, TwoThreadsRegisterTheSameMemoryOnce) {
  std::vector<char> bytes(kLong);
  BufferPtr buffer;
  std::future<void> second;
  uint64_t before = 0;
  run(
      [&](const ContextPtr& context) {
        before = fakeVerbs().counts().registrations;
        buffer = context->createUnboundBuffer(bytes.data(), kLong);
        second = std::async(std::launch::async,
                            [&] { buffer->recv(1, 1, kLong / 2, kLong / 2); });
        buffer->recv(1, 2, 0, kLong / 2);
      },
      &pingPong,
      [&](const ContextPtr& context) {
        second.get();
        EXPECT_EQ(fakeVerbs().counts().registrations, before + 1);
        signal(context, 1);
        EXPECT_TRUE(buffer->waitRecv());
        EXPECT_TRUE(buffer->waitRecv());
        buffer.reset();
      },
      [](const ContextPtr& context) {
        pingPong(context);
        awaitSignal(context, 0);  // it has counted
        Message out(context, kLong / 2);
        for (uint64_t slot = 1; slot <= 2; slot++) {
          out.buffer->send(0, slot);
          EXPECT_TRUE(out.buffer->waitSend());
        }
      });
}

TEST_F(VerbsRegisteringTest, AContextThatClosesMeanwhileIsNoticed) {
  expectClosedMeanwhile(
      [](transport::UnboundBuffer& buffer) { buffer.recv(1, 1); });
}

TEST_F(VerbsRegisteringTest, ARefusalIsToldAndThePairGoesOn) {
  std::vector<char> bytes(kLong);
  BufferPtr buffer;
  run(
      [&](const ContextPtr& context) {
        buffer = context->createUnboundBuffer(bytes.data(), kLong);
        try {
          buffer->recv(1, 1);
          ADD_FAILURE() << "received without registered memory";
        } catch (const IoException& e) {
          EXPECT_THAT(e.what(), HasSubstr("Cannot allocate memory"));
        }
      },
      [](const ContextPtr&) { fakeVerbs().fail(FakeCall::kRegMr, ENOMEM); },
      [&](const ContextPtr& context) {
        pingPong(context);
        buffer.reset();
      },
      &pingPong);
}

TEST_F(VerbsRegisteringTest, AndWhileABoundBufferIsMade) {
  std::vector<char> bytes(kLong);
  std::unique_ptr<transport::Buffer> buffer;
  run(
      [&](const ContextPtr& context) {
        buffer = context->getPair(1)->createRecvBuffer(3, bytes.data(), kLong);
      },
      &pingPong,
      [&](const ContextPtr&) {
        buffer->waitRecv();
        EXPECT_EQ(mismatch(5, bytes.data(), kLong), kLong);
        buffer.reset();
      },
      [](const ContextPtr& context) {
        pingPong(context);
        auto out = pattern(5, kLong);
        auto send = context->getPair(0)->createSendBuffer(3, out.data(), kLong);
        send->send();
        send->waitSend();
      });
}

// By two threads, whose keys are of one registration.
TEST_F(VerbsRegisteringTest, AndWhileMemoryIsExported) {
  std::vector<char> bytes(kLong);
  BufferPtr buffer;
  std::future<std::string> second;
  std::string first;
  uint64_t before = 0;
  run(
      [&](const ContextPtr& context) {
        before = fakeVerbs().counts().registrations;
        buffer = context->createUnboundBuffer(bytes.data(), kLong);
        const auto key = [&] { return buffer->getRemoteKey()->serialize(); };
        second = std::async(std::launch::async, key);
        first = key();
      },
      &pingPong,
      [&](const ContextPtr& context) {
        EXPECT_EQ(first, second.get());
        EXPECT_EQ(fakeVerbs().counts().registrations, before + 1);
        signal(context, 1);
        buffer.reset();
      },
      [](const ContextPtr& context) {
        pingPong(context);
        awaitSignal(context, 0);  // it has counted
      });
}

TEST_F(VerbsRegisteringTest, AContextThatClosesMeanwhileExportsNothing) {
  expectClosedMeanwhile(
      [](transport::UnboundBuffer& buffer) { (void)buffer.getRemoteKey(); });
}

// As a collective does with the caller's buffer over the same vector.
TEST_F(VerbsRegisteringTest, AnotherBufferOverTheSameVectorEndsMeanwhile) {
  std::vector<char> bytes(kLong);
  internal::Operation op;
  std::unique_ptr<internal::KeptMemory> kept;
  BufferPtr buffer;
  run(
      [&](const ContextPtr& context) {
        auto& channel = internal::Channel::of(*context);
        buffer = context->createUnboundBuffer(bytes.data(), kLong);
        kept = channel.keep(bytes.data(), kLong, false);
        channel.postRecv(op, 1, 1, bytes.data(), kLong, 0);
      },
      [&](const ContextPtr& context) {
        buffer.reset();
        pingPong(context);
      },
      [&](const ContextPtr& context) {
        expectReceived(context, op, bytes);
        kept.reset();
      },
      &answer);
}

// Its bytes are in memory that a longer buffer covers, which goes meanwhile.
TEST_F(VerbsRegisteringTest, AnotherBufferOverTheSameMemoryEndsMeanwhile) {
  std::vector<char> bytes(kLong);
  BufferPtr buffer;
  BufferPtr longer;
  run(
      [&](const ContextPtr& context) {
        buffer = context->createUnboundBuffer(bytes.data() + 1, kLong / 2);
        longer = context->createUnboundBuffer(bytes.data() + 1, kLong - 1);
        buffer->recv(1, 1);
      },
      [&](const ContextPtr& context) {
        longer.reset();
        pingPong(context);
      },
      [&](const ContextPtr&) {
        EXPECT_TRUE(buffer->waitRecv());
        EXPECT_EQ(mismatch(5, bytes.data() + 1, kLong / 2), kLong / 2);
        buffer.reset();
      },
      [](const ContextPtr& context) {
        pingPong(context);
        Message out(context, pattern(5, kLong / 2));
        out.buffer->send(0, 1);
        EXPECT_TRUE(out.buffer->waitSend());
      });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
