// After a call has failed because its time was over, nothing reaches its memory
// any more, whatever is on its way.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gloo/allreduce.h"
#include "gloo/internal/statistics.h"
#include "gloo/math.h"
#include "tests/support/process_group.h"
#include "tests/transport/ibverbs/harm.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using std::chrono::milliseconds;

class VerbsTimedOutTest : public VerbsFailureTest {};

// Rank 1's write is on its way when rank 0's wait ends.
TEST_F(VerbsTimedOutTest, NoWriteReachesMemoryAfterItsReceiveHasTimedOut) {
  constexpr size_t kSize = 1 << 20;
  const auto maker = fakeVerbsDevices(asynchronousDevices(5));
  spawn(Mode::kThreads, maker, 2, [&](const ContextPtr& context) {
    meet(context);
    if (context->rank == 0) {
      std::vector<char> bytes(kSize, 'c');
      auto in = context->createUnboundBuffer(bytes.data(), kSize);
      in->recv(1, 1);
      signal(context, 1);  // behind the advert
      meetOutside();
      EXPECT_TRUE(fakeVerbs().canBeWritten(bytes.data(), kSize));
      EXPECT_THROW(in->waitRecv(milliseconds(100)), TimeoutException);
      EXPECT_FALSE(fakeVerbs().canBeWritten(bytes.data(), kSize));
      fakeVerbs().resume();
      in.reset();
      EXPECT_THROW(wait(context), IoException);
      EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 'c'), long{kSize});
    } else {
      awaitSignal(context, 0);
      Message out(context, std::vector<char>(kSize, 'x'));
      fakeVerbs().pause();
      out.buffer->send(0, 1);
      meetOutside();
      EXPECT_THROW(out.buffer->waitSend(), IoException);
    }
  });
}

// The same for bound buffers, whose memory is open for as long as they live.
TEST_F(VerbsTimedOutTest, NoWriteReachesABoundBufferAfterItsWaitHasTimedOut) {
  constexpr size_t kSize = 1 << 20;
  const auto maker = fakeVerbsDevices(asynchronousDevices(5));
  spawn(Mode::kThreads, maker, 2, [&](const ContextPtr& context) {
    auto& pair = *context->getPair(1 - context->rank);
    meet(context);
    if (context->rank == 0) {
      std::vector<char> bytes(kSize, 'c');
      auto in = pair.createRecvBuffer(1, bytes.data(), kSize);
      signal(context, 1);  // behind the advert
      meetOutside();
      EXPECT_TRUE(fakeVerbs().canBeWritten(bytes.data(), kSize));
      context->setTimeout(milliseconds(100));
      EXPECT_THROW(in->waitRecv(), TimeoutException);
      EXPECT_FALSE(fakeVerbs().canBeWritten(bytes.data(), kSize));
      fakeVerbs().resume();
      in.reset();
      EXPECT_THROW(wait(context), IoException);
      EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 'c'), long{kSize});
    } else {
      std::vector<char> bytes(kSize, 'x');
      auto out = pair.createSendBuffer(1, bytes.data(), kSize);
      awaitSignal(context, 0);
      fakeVerbs().pause();
      out->send();
      meetOutside();
      EXPECT_THROW(out->waitSend(), IoException);
    }
  });
}

// And for vectors that a collective has registered. Rank 1 writes to rank 0
// when the time is over.
TEST_F(VerbsTimedOutTest, NoWriteReachesAVectorAfterItsAllreduceHasTimedOut) {
  constexpr size_t kBytes = 1 << 20;
  std::array<std::vector<float>, 2> vectors;
  std::array<std::shared_ptr<transport::Device>, 2> devices;
  const auto counts = [&devices](int rank) {
    return internal::statisticsOf(*devices[rank]);
  };
  const auto body = [&](const std::shared_ptr<Context>& context) {
    const int rank = context->rank;
    std::vector<float>& vector = vectors[rank];
    vector.assign(kBytes / sizeof(float), 1);
    const auto canBeWritten = [&](int whose) {
      return fakeVerbs().canBeWritten(vectors[whose].data(), kBytes);
    };
    AllreduceOptions options(context);
    options.setOutput(vector.data(), vector.size());
    void (*add)(void*, const void*, const void*, size_t) = &sum<float>;
    options.setReduceFunction(add);
    allreduce(options);
    EXPECT_FALSE(canBeWritten(rank));
    options.setTimeout(milliseconds(300) * slowness());
    devices[rank] = context->getDevice();
    meetOutside();
    const auto before = counts(rank);
    const auto others = counts(0);
    meetOutside();
    if (rank == 1) {
      // Its announcement is behind its advert.
      while (counts(0).announcesSent == others.announcesSent) {
        std::this_thread::yield();
      }
      EXPECT_TRUE(canBeWritten(0));
      fakeVerbs().pause();
    }
    EXPECT_THROW(allreduce(options), IoException);
    EXPECT_FALSE(canBeWritten(rank));
    EXPECT_EQ(counts(rank).directSent - before.directSent,
              static_cast<uint64_t>(rank));
    meetOutside();
    fakeVerbs().resume();
  };
  spawnContexts(Mode::kThreads, fakeVerbsDevices(plainDevices()), 2, body);
}

// The same for a get, which reads into memory of the one that asked.
TEST_F(VerbsTimedOutTest, NoReadReachesMemoryAfterItsGetHasTimedOut) {
  constexpr size_t kSize = 1 << 20;
  const auto maker = fakeVerbsDevices(asynchronousDevices(5));
  std::string key;
  spawn(Mode::kThreads, maker, 2, [&](const ContextPtr& context) {
    Message there(context, std::vector<char>(kSize, 'x'));
    if (context->rank == 1) {
      key = there.buffer->getRemoteKey()->serialize();
    }
    meet(context);
    if (context->rank == 1) {
      meetOutside();
      EXPECT_THROW(wait(context), IoException);
      return;
    }
    std::vector<char> bytes(kSize, 'c');
    auto in = context->createUnboundBuffer(bytes.data(), kSize);
    const auto remote = context->deserializeRemoteKey(key);
    meetOutside();
    fakeVerbs().pause();
    in->get(*remote, 1, 0, 0, kSize);
    EXPECT_TRUE(fakeVerbs().canBeWritten(bytes.data(), kSize));
    EXPECT_THROW(in->waitSend(milliseconds(100)), TimeoutException);
    EXPECT_FALSE(fakeVerbs().canBeWritten(bytes.data(), kSize));
    fakeVerbs().resume();
    EXPECT_THROW(wait(context), IoException);
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 'c'), long{kSize});
  });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
