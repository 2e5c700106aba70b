// put and get with a RemoteKey.
#include <sys/mman.h>

#include <algorithm>

#include "tests/transport/contract/contract.h"
#include "tests/transport/contract/keys.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

class OneSidedTest : public ContractTest {};

TEST_P(OneSidedTest, PutWritesWhatWasMeant) {
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{100}, size_t{65537}, size_t{3} << 20}) {
    run(2, [size](const ContextPtr& context) {
      if (context->rank == 0) {
        Message target(context, std::vector<char>(size + 100, 'c'));
        sendKey(context, 1, *target.buffer);
        awaitSignal(context, 1);  // no progress by this rank meanwhile
        EXPECT_EQ(mismatch(3, target.bytes.data() + 50, size), size);
        EXPECT_EQ(
            std::count(target.bytes.begin(), target.bytes.begin() + 50, 'c'),
            50);
        EXPECT_EQ(std::count(target.bytes.end() - 50, target.bytes.end(), 'c'),
                  50);
      } else {
        const auto key = recvKey(context, 0);
        EXPECT_EQ(key->rank, 0);
        EXPECT_EQ(key->size, size + 100);
        Message source(context, pattern(3, size));
        source.buffer->put(*key, 1, 0, 50, size);
        EXPECT_TRUE(source.buffer->waitSend());
        signal(context, 0);
      }
    });
  }
}

TEST_P(OneSidedTest, GetReadsWhatIsThere) {
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{100}, size_t{65537}, size_t{3} << 20}) {
    run(2, [size](const ContextPtr& context) {
      if (context->rank == 0) {
        Message target(context, pattern(4, size + 10));
        sendKey(context, 1, *target.buffer);
        awaitSignal(context, 1);
      } else {
        const auto key = recvKey(context, 0);
        Message all(context, size + 10);
        all.buffer->get(*key, 1, 0, 0, size + 10);
        EXPECT_TRUE(all.buffer->waitSend());
        EXPECT_TRUE(all.holds(4));
        Message part(context, std::vector<char>(size + 20, 'c'));
        part.buffer->get(*key, 2, 7, 10, size);
        EXPECT_TRUE(part.buffer->waitSend());
        EXPECT_TRUE(std::equal(part.bytes.begin() + 7, part.bytes.end() - 13,
                               all.bytes.begin() + 10));
        EXPECT_EQ(part.bytes[6], 'c');
        EXPECT_EQ(part.bytes[size + 7], 'c');
        signal(context, 0);
      }
    });
  }
}

// So a receive into the same buffer is not taken for it, nor it for that.
TEST_P(OneSidedTest, AGetIsWaitedForAsASendIs) {
  run(2, [](const ContextPtr& context) {
    Message target(context, pattern(context->rank, 1000));
    const int peer = 1 - context->rank;
    const auto key = exchangeKeys(context, peer, *target.buffer);
    const auto own = target.buffer->getRemoteKey();
    Message in(context, 1000);
    in.buffer->recv(peer, 5, 0, 500);
    in.buffer->get(*own, 6, 500, 0, 500);
    int rank = -1;
    EXPECT_TRUE(in.buffer->waitSend(&rank));
    EXPECT_EQ(rank, context->rank);
    in.buffer->get(*key, 7, 500, 500, 500);
    EXPECT_TRUE(in.buffer->waitSend(&rank));
    EXPECT_EQ(rank, peer);
    meet(context);
    target.buffer->send(peer, 5, 0, 500);
    EXPECT_TRUE(target.buffer->waitSend());
    EXPECT_TRUE(in.buffer->waitRecv(&rank));
    EXPECT_EQ(rank, peer);
    EXPECT_TRUE(in.holds(peer));
    meet(context);
  });
}

TEST_P(OneSidedTest, TheTargetNeedNotWait) {
  run(2, [](const ContextPtr& context) {
    Message target(context, pattern(context->rank, 4096));
    const int peer = 1 - context->rank;
    const auto key = exchangeKeys(context, peer, *target.buffer);
    for (int i = 0; i < 100; i++) {
      Message in(context, 4096);
      in.buffer->get(*key, i, 0, 0, 4096);
      EXPECT_TRUE(in.buffer->waitSend());
      EXPECT_TRUE(in.holds(peer));
    }
    meet(context);
  });
}

TEST_P(OneSidedTest, ManyInFlight) {
  run(3, [](const ContextPtr& context) {
    constexpr size_t kSize = 1000;
    if (context->rank == 0) {
      Message target(context, 200 * kSize);
      sendKey(context, 1, *target.buffer);
      sendKey(context, 2, *target.buffer);
      meet(context);
      EXPECT_EQ(mismatch(1, target.bytes.data(), 100 * kSize), 100 * kSize);
      EXPECT_EQ(mismatch(2, target.bytes.data() + 100 * kSize, 100 * kSize),
                100 * kSize);
      meet(context);
      return;
    }
    const auto key = recvKey(context, 0);
    const size_t base = (context->rank - 1) * 100 * kSize;
    Message source(context, pattern(context->rank, 100 * kSize));
    for (size_t i = 0; i < 100; i++) {
      source.buffer->put(*key, i, i * kSize, base + i * kSize, kSize);
    }
    for (size_t i = 0; i < 100; i++) {
      EXPECT_TRUE(source.buffer->waitSend());
    }
    meet(context);
    meet(context);
  });
}

TEST_P(OneSidedTest, RangesOutsideAreRefused) {
  run(2, [](const ContextPtr& context) {
    const int peer = 1 - context->rank;
    Message target(context, std::vector<char>(100, 'c'));
    const auto key = exchangeKeys(context, peer, *target.buffer);
    Message own(context, 200);
    EXPECT_THROW(own.buffer->put(*key, 1, 0, 0, 101), EnforceNotMet);
    EXPECT_THROW(own.buffer->put(*key, 1, 0, 101, 0), EnforceNotMet);
    EXPECT_THROW(own.buffer->put(*key, 1, 0, 1, ~size_t{0}), EnforceNotMet);
    EXPECT_THROW(own.buffer->put(*key, 1, 150, 0, 51), EnforceNotMet);
    EXPECT_THROW(own.buffer->get(*key, 1, 0, 60, 41), EnforceNotMet);
    EXPECT_THROW(own.buffer->get(*key, 1, ~size_t{0}, 0, 1), EnforceNotMet);
    meet(context);
    EXPECT_EQ(std::count(target.bytes.begin(), target.bytes.end(), 'c'), 100);
  });
}

// Where it is called, so that the ranks go on; no byte has moved.
TEST_P(OneSidedTest, AKeyAllowsTheUseThatItWasAskedFor) {
  run(2, [](const ContextPtr& context) {
    constexpr size_t kSize = 30000;
    const int peer = 1 - context->rank;
    Message toRead(context, pattern(context->rank, kSize));
    Message toWrite(context, std::vector<char>(kSize, 'c'));
    const auto get = exchangeKeys(context, peer, *toRead.buffer,
                                  transport::RemoteAccess::kRead);
    const auto put = exchangeKeys(context, peer, *toWrite.buffer,
                                  transport::RemoteAccess::kWrite);
    const auto ownGet =
        toRead.buffer->getRemoteKey(transport::RemoteAccess::kRead);
    Message own(context, std::vector<char>(kSize, 'x'));
    for (const transport::RemoteKey* key : {get.get(), ownGet.get()}) {
      try {
        own.buffer->put(*key, 1, 0, 0, kSize);
        ADD_FAILURE() << "put";
      } catch (const InvalidOperationException& e) {
        EXPECT_NE(std::string(e.what()).find("exported for get only"),
                  std::string::npos)
            << e.what();
      }
    }
    EXPECT_THROW(own.buffer->get(*put, 1, 0, 0, kSize),
                 InvalidOperationException);
    EXPECT_EQ(std::count(own.bytes.begin(), own.bytes.end(), 'x'), kSize);
    meet(context);
    EXPECT_TRUE(toRead.holds(context->rank));
    EXPECT_EQ(std::count(toWrite.bytes.begin(), toWrite.bytes.end(), 'c'),
              kSize);
    meet(context);
    own.buffer->put(*put, 1, 0, 0, kSize);
    EXPECT_TRUE(own.buffer->waitSend());
    own.buffer->get(*get, 1, 0, 0, kSize);
    EXPECT_TRUE(own.buffer->waitSend());
    EXPECT_TRUE(own.holds(peer));
    meet(context);
    EXPECT_EQ(std::count(toWrite.bytes.begin(), toWrite.bytes.end(), 'x'),
              kSize);
    meet(context);
  });
}

// A put would end this process.
TEST_P(OneSidedTest, MemoryThatMayOnlyBeReadIsExportedForGetAlone) {
  run(2, [](const ContextPtr& context) {
    constexpr size_t kSize = 10000;
    void* const memory = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    const std::vector<char> bytes = pattern(context->rank, kSize);
    std::copy(bytes.begin(), bytes.end(), static_cast<char*>(memory));
    ASSERT_EQ(::mprotect(memory, kSize, PROT_READ), 0);
    {
      const auto target = context->createUnboundBuffer(memory, kSize);
      EXPECT_THROW((void)target->getRemoteKey(transport::RemoteAccess::kWrite),
                   IoException);
      const int peer = 1 - context->rank;
      const auto key = exchangeKeys(context, peer, *target);
      Message own(context, kSize);
      EXPECT_THROW(own.buffer->put(*key, 1, 0, 0, kSize),
                   InvalidOperationException);
      own.buffer->get(*key, 1, 0, 0, kSize);
      EXPECT_TRUE(own.buffer->waitSend());
      EXPECT_TRUE(own.holds(peer));
      meet(context);
    }
    ::munmap(memory, kSize);
  });
}

TEST_P(OneSidedTest, KeysThatAreNoKeysAreRefused) {
  run(2, [](const ContextPtr& context) {
    Message target(context, 100);
    const std::string good = target.buffer->getRemoteKey()->serialize();
    EXPECT_EQ(context->deserializeRemoteKey(good)->serialize(), good);
    EXPECT_EQ(context->deserializeRemoteKey(good)->size, 100u);
    for (size_t n = 0; n < good.size(); n++) {
      EXPECT_THROW(context->deserializeRemoteKey(good.substr(0, n)),
                   EnforceNotMet)
          << n;
    }
    EXPECT_THROW(context->deserializeRemoteKey(good + "x"), EnforceNotMet);
    EXPECT_THROW(context->deserializeRemoteKey(std::string(good.size(), 'x')),
                 EnforceNotMet);
    meet(context);
  });
}

// A key outlives its buffer: the operation fails, the memory is not touched.
TEST_P(OneSidedTest, TheTargetsBufferIsGone) {
  for (const bool isPut : {true, false}) {
    run(2, [isPut](const ContextPtr& context) {
      if (context->rank == 0) {
        std::vector<char> bytes(1000, 'c');
        auto target = context->createUnboundBuffer(bytes.data(), bytes.size());
        sendKey(context, 1, *target);
        target.reset();
        // Told by a message, or by the end of the peer, which may come before
        // the signal's send is known to be complete.
        try {
          signal(context, 1);
          auto buffer = context->createUnboundBuffer(nullptr, 0);
          buffer->recv(1, kSignalSlot);
          buffer->waitRecv();
        } catch (const IoException&) {
        }
        EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 'c'), 1000);
      } else {
        const auto key = recvKey(context, 0);
        awaitSignal(context, 0);
        Message own(context, std::vector<char>(1000, 'x'));
        EXPECT_THROW(
            {
              if (isPut) {
                own.buffer->put(*key, 1, 0, 0, 1000);
                own.buffer->waitSend();
              } else {
                own.buffer->get(*key, 1, 0, 0, 1000);
                own.buffer->waitSend();
              }
            },
            Exception);
        EXPECT_EQ(std::count(own.bytes.begin(), own.bytes.end(), 'x'), 1000);
      }
    });
  }
}

GLOO_CONTRACT_SUITE(OneSidedTest);

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
