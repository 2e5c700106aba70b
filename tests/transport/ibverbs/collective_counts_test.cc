// What a collective has registered: counts, which no noise changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>

#include "gloo/allgather.h"
#include "gloo/allreduce.h"
#include "gloo/allreduce_halving_doubling.h"
#include "gloo/broadcast.h"
#include "gloo/internal/channel.h"
#include "gloo/internal/statistics.h"
#include "gloo/math.h"
#include "gloo/scatter.h"
#include "tests/support/hierarchy.h"
#include "tests/support/spawn.h"
#include "tests/transport/ibverbs/fake_devices.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

constexpr size_t kLarge = 1 << 20;

class VerbsCollectiveCountsTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(mistakesOfFakeVerbs(), ""); }
};

TEST_F(VerbsCollectiveCountsTest,
       ACollectiveRegistersAVectorNotEachOfItsMessages) {
  spawnContexts(Mode::kThreads, fakeVerbsDevices(plainDevices()), 2,
                [](const std::shared_ptr<Context>& context) {
                  std::vector<float> data(kLarge, 1);
                  AllreduceOptions options(context);
                  options.setOutput(data.data(), data.size());
                  void (*add)(void*, const void*, const void*, size_t) =
                      &sum<float>;
                  options.setReduceFunction(add);
                  allreduce(options);  // makes scratch memory
                  const auto& device = *context->getDevice();
                  const auto before = internal::statisticsOf(device);
                  allreduce(options);
                  const auto after = internal::statisticsOf(device);
                  EXPECT_GT(after.directSent - before.directSent, 4u);
                  // To be sent and to be written by the peer.
                  EXPECT_EQ(after.registrations - before.registrations, 1u);
                  EXPECT_EQ(std::count(data.begin(), data.end(), 4.0f), kLarge);
                });
}

// Not the buffer that covers more, and that nobody has used.
TEST_F(VerbsCollectiveCountsTest, ACollectiveRegistersItsVectorsAndNoMore) {
  spawnContexts(
      Mode::kThreads, fakeVerbsDevices(plainDevices()), 2,
      [](const std::shared_ptr<Context>& context) {
        constexpr size_t kPart = kLarge / 8;  // one message
        std::vector<float> data(2 * kLarge, 1);
        const auto longer = context->createUnboundBuffer(
            data.data(), data.size() * sizeof(float));
        AllreduceOptions sums(context);
        sums.setOutput(data.data() + kLarge, kLarge);
        void (*add)(void*, const void*, const void*, size_t) = &sum<float>;
        sums.setReduceFunction(add);
        ScatterOptions parts(context);
        parts.setRoot(1);
        parts.setInputs(std::vector<float*>{&data[kPart], &data[2 * kPart]},
                        kPart);
        parts.setOutput(&data[4 * kPart], kPart);
        const auto run = [&] {
          allreduce(sums);
          scatter(parts);
        };
        run();  // also makes scratch memory
        const auto& device = *context->getDevice();
        const auto before = internal::statisticsOf(device);
        run();
        const auto after = internal::statisticsOf(device);
        // The vector of the one, and the message of the other.
        EXPECT_EQ(after.registrations - before.registrations, 2u);
        EXPECT_FALSE(
            fakeVerbs().canBeWritten(data.data(), data.size() * sizeof(float)));
      });
}

// Until it is registered for the same use.
TEST_F(VerbsCollectiveCountsTest, ALongerBufferThatIsRegisteredServesAVector) {
  spawnContexts(Mode::kThreads, fakeVerbsDevices(plainDevices()), 2,
                [](const std::shared_ptr<Context>& context) {
                  std::vector<float> data(2 * kLarge, 1);
                  const std::shared_ptr<transport::UnboundBuffer> longer =
                      context->createUnboundBuffer(data.data(),
                                                   data.size() * sizeof(float));
                  AllreduceOptions sums(context);
                  void (*add)(void*, const void*, const void*, size_t) =
                      &sum<float>;
                  sums.setReduceFunction(add);
                  sums.setOutput<float>(longer);
                  allreduce(sums);
                  sums.setOutput(data.data() + kLarge / 2, kLarge);
                  allreduce(sums);  // also makes scratch memory
                  const auto& device = *context->getDevice();
                  const auto before = internal::statisticsOf(device);
                  allreduce(sums);
                  const auto after = internal::statisticsOf(device);
                  EXPECT_GT(after.directSent, before.directSent);
                  EXPECT_EQ(after.registrations, before.registrations);
                });
}

// The caller's buffers, whichever part of them a message is of.
TEST_F(VerbsCollectiveCountsTest, ACollectiveRegistersKeptBuffersOnce) {
  const auto body = [](const std::shared_ptr<Context>& context) {
    const auto size = static_cast<size_t>(context->size);
    std::vector<float> data(kLarge * size, 1);
    std::vector<float> all(kLarge * size);
    const std::shared_ptr<transport::UnboundBuffer> in =
        context->createUnboundBuffer(data.data(), kLarge * sizeof(float));
    const std::shared_ptr<transport::UnboundBuffer> out =
        context->createUnboundBuffer(all.data(), all.size() * sizeof(float));
    const auto run = [&] {
      AllreduceOptions sums(context);
      sums.setOutput<float>(in);
      void (*add)(void*, const void*, const void*, size_t) = &sum<float>;
      sums.setReduceFunction(add);
      allreduce(sums);
      AllgatherOptions gather(context);
      gather.setInput<float>(in);
      gather.setOutput<float>(out);
      allgather(gather);
      BroadcastOptions spread(context);
      spread.setOutput<float>(out);
      spread.setRoot(1);
      broadcast(spread);
    };
    run();  // also makes scratch memory
    const auto& device = *context->getDevice();
    const auto before = internal::statisticsOf(device);
    run();
    run();
    const auto after = internal::statisticsOf(device);
    EXPECT_GT(after.directSent - before.directSent, 4u);
    EXPECT_EQ(after.registrations - before.registrations, 0u);
    const auto sum = static_cast<float>(size * size * size);
    EXPECT_EQ(std::count(all.begin(), all.end(), sum), kLarge * context->size);
  };
  for (const int size : {2, 3}) {
    spawnContexts(Mode::kThreads, fakeVerbsDevices(plainDevices()), size, body);
  }
}

// Of the posts one in 8 asks for a completion, and receives are posted again 16
// at a time.
TEST_F(VerbsCollectiveCountsTest, AShortAllreduceIsOnePostOnEachRank) {
  std::barrier<> together(2);
  const auto body = [&](const std::shared_ptr<Context>& context) {
    double data = 0;
    AllreduceOptions options(context);
    options.setOutput(&data, 1);
    void (*add)(void*, const void*, const void*, size_t) = &sum<double>;
    options.setReduceFunction(add);
    // Of 64 calls, until both have taken everything.
    const auto run = [&] {
      for (int i = 0; i < 64; i++) {
        allreduce(options);
      }
      together.arrive_and_wait();
      for (int i = 0; i < 4; i++) {
        internal::Channel::of(testing_support::Inside::of(context)).poll();
      }
      const auto counts = internal::statisticsOf(*context->getDevice());
      together.arrive_and_wait();
      return counts;
    };
    const auto before = run();
    const auto after = run();
    EXPECT_EQ(after.posts - before.posts, 64u);
    EXPECT_EQ(after.doorbells - before.doorbells, 64u + 64 / 16);
    EXPECT_EQ(after.signalled - before.signalled, 64u / 8);
    EXPECT_EQ(after.completions - before.completions, 64u + 64 / 8);
    EXPECT_EQ(after.creditsSent, before.creditsSent);
    EXPECT_EQ(after.registrations, before.registrations);
    EXPECT_EQ(after.allocations, before.allocations);
  };
  spawnContexts(Mode::kThreads, fakeVerbsDevices(plainDevices()), 2, body);
}

// As the older classes, whose memory is known when they are made.
TEST_F(VerbsCollectiveCountsTest, AnAlgorithmObjectRegistersOnce) {
  spawnContexts(
      Mode::kThreads, fakeVerbsDevices(plainDevices()), 2,
      [](const std::shared_ptr<Context>& context) {
        std::vector<float> data(kLarge, 1);
        AllreduceHalvingDoubling<float> sums(context, {data.data()}, kLarge);
        sums.run();  // also makes scratch memory
        sums.run();
        const auto& device = *context->getDevice();
        const auto before = internal::statisticsOf(device);
        sums.run();
        sums.run();
        const auto after = internal::statisticsOf(device);
        EXPECT_GT(after.directSent, before.directSent);
        EXPECT_EQ(after.registrations, before.registrations);
        EXPECT_EQ(after.allocations, before.allocations);
        EXPECT_EQ(std::count(data.begin(), data.end(), 16.0f), kLarge);
      });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
