// What the device lets peers do with registered memory: what was asked for.
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <string>
#include <vector>

#include "tests/transport/contract/contract.h"
#include "tests/transport/ibverbs/fake_devices.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using transport::RemoteAccess;

constexpr unsigned kWrite = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
constexpr unsigned kRead = IBV_ACCESS_REMOTE_READ;
constexpr size_t kBytes = 100000;

class VerbsRightsTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(mistakesOfFakeVerbs(), ""); }

  static void run(const TransportFunction& body) {
    spawn(Mode::kThreads, fakeVerbsDevices(plainDevices()), 2,
          [&](const ContextPtr& context) {
            meet(context);
            body(context);
            meet(context);
          });
  }
};

unsigned accessTo(const Message& message) {
  return fakeVerbs().accessTo(message.bytes.data());
}

TEST_F(VerbsRightsTest, AKeyRegistersForTheUseThatItIsAskedFor) {
  run([](const ContextPtr& context) {
    Message toRead(context, kBytes);
    const auto get = toRead.buffer->getRemoteKey(RemoteAccess::kRead);
    EXPECT_EQ(accessTo(toRead), kRead);
    Message toWrite(context, kBytes);
    const auto put = toWrite.buffer->getRemoteKey(RemoteAccess::kWrite);
    EXPECT_EQ(accessTo(toWrite), kWrite);
    Message both(context, kBytes);
    const auto any = both.buffer->getRemoteKey();
    EXPECT_EQ(accessTo(both), kRead | kWrite);
  });
}

// No key of a buffer gets what another one was asked for.
TEST_F(VerbsRightsTest, KeysForDifferentUsesHaveARegistrationEach) {
  std::string text[2];
  run([&](const ContextPtr& context) {
    if (context->rank == 0) {
      Message message(context, kBytes);
      const auto before = fakeVerbs().counts().registrations;
      text[0] = message.buffer->getRemoteKey(RemoteAccess::kRead)->serialize();
      text[1] = message.buffer->getRemoteKey(RemoteAccess::kWrite)->serialize();
      EXPECT_EQ(fakeVerbs().counts().registrations, before + 2);
      EXPECT_NE(text[0], text[1]);
      EXPECT_EQ(message.buffer->getRemoteKey(RemoteAccess::kRead)->serialize(),
                text[0]);
      EXPECT_EQ(fakeVerbs().counts().registrations, before + 2);
      signal(context, 1);
      awaitSignal(context, 1);
      EXPECT_TRUE(message.holds(7));
    } else {
      awaitSignal(context, 0);
      Message own(context, pattern(7, kBytes));
      own.buffer->put(*context->deserializeRemoteKey(text[1]), 1, 0, 0, kBytes);
      EXPECT_TRUE(own.buffer->waitSend());
      Message back(context, kBytes);
      back.buffer->get(*context->deserializeRemoteKey(text[0]), 2, 0, 0,
                       kBytes);
      EXPECT_TRUE(back.buffer->waitSend());
      EXPECT_TRUE(back.holds(7));
      signal(context, 0);
    }
  });
}

// A receive is for the peer to write, a send for nobody else.
TEST_F(VerbsRightsTest, MessagesRegisterForNoMoreThanTheirDirection) {
  run([](const ContextPtr& context) {
    const int peer = 1 - context->rank;
    Message in(context, kBytes);
    Message out(context, kBytes);
    in.buffer->recv(peer, 1);
    out.buffer->send(peer, 1);
    EXPECT_TRUE(in.buffer->waitRecv());
    EXPECT_TRUE(out.buffer->waitSend());
    EXPECT_EQ(accessTo(in), kWrite);
    EXPECT_EQ(accessTo(out), 0u);
  });
}

// Each operation registers its own buffer, whatever other ones cover it.
TEST_F(VerbsRightsTest, AnUnusedLongerBufferIsNotRegisteredForAPartOfIt) {
  run([](const ContextPtr& context) {
    const int peer = 1 - context->rank;
    Message in(context, 16 * kBytes);
    Message out(context, 16 * kBytes);
    char* const place = in.bytes.data() + kBytes;
    char* const source = out.bytes.data() + kBytes;
    {
      const auto recv = context->createUnboundBuffer(place, kBytes);
      const auto send = context->createUnboundBuffer(source, kBytes);
      const auto before = fakeVerbs().counts().registrations;
      meet(context);
      recv->recv(peer, 1);
      send->send(peer, 1);
      EXPECT_TRUE(recv->waitRecv());
      EXPECT_TRUE(send->waitSend());
      meet(context);
      EXPECT_EQ(fakeVerbs().counts().registrations, before + 4);  // both ranks'
      EXPECT_EQ(accessTo(in), 0u);
      EXPECT_EQ(fakeVerbs().accessTo(place), kWrite);
    }
    EXPECT_FALSE(fakeVerbs().canBeWritten(in.bytes.data(), in.bytes.size()));
    meet(context);
  });
}

// What it was registered for before, the peers may do with it anyway.
TEST_F(VerbsRightsTest, ALongerBufferThatIsRegisteredServesAPartOfIt) {
  run([](const ContextPtr& context) {
    const int peer = 1 - context->rank;
    Message in(context, 16 * kBytes);
    Message out(context, kBytes);
    char* const place = in.bytes.data() + kBytes;
    const auto part = context->createUnboundBuffer(place, kBytes);
    for (transport::UnboundBuffer* const buffer :
         {in.buffer.get(), part.get()}) {
      buffer->recv(peer, 1);
      out.buffer->send(peer, 1);
      EXPECT_TRUE(buffer->waitRecv());
      EXPECT_TRUE(out.buffer->waitSend());
    }
    EXPECT_EQ(accessTo(in), kWrite);
    EXPECT_EQ(fakeVerbs().accessTo(place), 0u);
    meet(context);
  });
}

// Then the peers get no more than they need.
TEST_F(VerbsRightsTest, OfRegisteredBuffersTheShortestServes) {
  run([](const ContextPtr& context) {
    const int peer = 1 - context->rank;
    std::vector<char> memory(16 * kBytes);
    Message out(context, memory.size());
    const auto part = context->createUnboundBuffer(memory.data(), kBytes);
    auto longer = context->createUnboundBuffer(memory.data(), memory.size());
    for (transport::UnboundBuffer* const buffer : {part.get(), longer.get()}) {
      buffer->recv(peer, 1);
      out.buffer->send(peer, 1, 0, buffer->size);
      EXPECT_TRUE(buffer->waitRecv());
      EXPECT_TRUE(out.buffer->waitSend());
    }
    part->recv(peer, 1);
    longer.reset();
    EXPECT_FALSE(fakeVerbs().canBeWritten(memory.data() + kBytes, 15 * kBytes));
    out.buffer->send(peer, 1, 0, kBytes);
    EXPECT_TRUE(part->waitRecv());
    EXPECT_TRUE(out.buffer->waitSend());
    meet(context);
  });
}

// A mapped file, say.
TEST_F(VerbsRightsTest, MemoryThatMayOnlyBeReadIsRegisteredForGetAlone) {
  run([](const ContextPtr& context) {
    void* const memory =
        ::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    {
      const auto buffer = context->createUnboundBuffer(memory, kBytes);
      const auto key = buffer->getRemoteKey();
      EXPECT_EQ(fakeVerbs().accessTo(memory), kRead);
    }
    ::munmap(memory, kBytes);
  });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
