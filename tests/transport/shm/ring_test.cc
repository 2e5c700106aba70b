#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "tests/transport/shm/harness.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace transport::shm;  // NOLINT
using transport::base::FrameHeader;
using transport::base::ShortMessage;

std::string payloadOf(uint64_t number, size_t bytes) {
  std::mt19937_64 random(number);
  std::string text(bytes, ' ');
  for (char& c : text) {
    c = static_cast<char>(random());
  }
  return text;
}

// Short, around the limits of a line, of a cell, of a short message, and longer
// than the ring.
size_t sizeOf(uint64_t number) {
  constexpr size_t kSizes[] = {0,    1,    8,    40,   41,   48,
                               49,   64,   104,  105,  112,  113,
                               1000, 4095, 4096, 4097, 9000, 40000};
  return kSizes[number * 7919 % std::size(kSizes)];
}

FrameHeader headerOf(uint64_t number) {
  FrameHeader header = eager(number, sizeOf(number));
  header.check = number % 3 == 0 ? number : 0;
  header.seen = static_cast<uint32_t>(number / 2);
  header.credits = number % 5 == 0 ? 64 * static_cast<uint32_t>(number % 9) : 0;
  return header;
}

// Behind every third frame there is a bound write.
bool hasBound(uint64_t number) { return number % 3 == 0; }
std::string boundOf(uint64_t number) {
  return payloadOf(~number, number % (kBoundBytes + 1));
}

void putBound(FrameWriter& writer, uint64_t number) {
  const std::string payload = boundOf(number);
  bool ring = false;
  while (!writer.bound(static_cast<uint32_t>(number), number << 32,
                       payload.data(), payload.size(), &ring)) {
    std::this_thread::yield();
  }
}

void expectBound(FrameReader& reader, uint64_t number) {
  const FrameReader::BoundWrite& got = reader.boundWrite();
  ASSERT_EQ(got.index, number);
  ASSERT_EQ(got.offset, number << 32);
  ASSERT_TRUE(std::string(got.payload, got.bytes) == boundOf(number));
  (void)reader.publish();
}

// Two threads on one mapping, the smallest ring: all of it wraps often.
TEST(RingTest, EveryFrameArrivesOnceWholeAndInOrder) {
  constexpr uint64_t kFrames = 20000;
  RingStorage storage(RingMemory::kMinCells, RingMemory::kMinBytes);
  std::thread producer([&] {
    FrameWriter writer(storage.memory());
    for (uint64_t n = 1; n <= kFrames; n++) {
      const FrameHeader header = headerOf(n);
      const std::string payload = payloadOf(n, header.payloadBytes);
      FrameProgress progress;
      bool ring = false;
      for (;;) {
        const auto step = writer.step(header, payload.data(), progress, &ring);
        if (step == FrameWriter::Step::kDone) {
          break;
        }
        if (step == FrameWriter::Step::kNoRoom) {
          std::this_thread::yield();
        }
      }
      if (hasBound(n)) {
        putBound(writer, n);
      }
    }
  });
  FrameReader reader(storage.memory(), 1 << 20);
  std::vector<char> place(1 << 16);
  int bounds = 0;  // since the last frame
  for (uint64_t n = 1; n <= kFrames || (hasBound(kFrames) && bounds == 0);) {
    switch (reader.next()) {
      case FrameReader::Event::kPayload:
        reader.setPlace(place.data());
        break;
      case FrameReader::Event::kFrame: {
        const FrameHeader expected = headerOf(n);
        const FrameHeader& got = reader.header();
        ASSERT_EQ(got.number, n);
        ASSERT_EQ(got.payloadBytes, expected.payloadBytes);
        ASSERT_EQ(got.check, expected.check);
        ASSERT_EQ(got.seen, expected.seen);
        ASSERT_EQ(got.credits, expected.credits);
        ASSERT_EQ(got.slot, expected.slot);
        ASSERT_TRUE(std::string(place.data(), got.payloadBytes) ==
                    payloadOf(n, got.payloadBytes))
            << n;
        (void)reader.publish();
        bounds = 0;
        n++;
        break;
      }
      case FrameReader::Event::kMessage: {
        const FrameHeader expected = headerOf(n);
        const ShortMessage& got = reader.message();
        ASSERT_EQ(got.number, n);
        ASSERT_EQ(got.bytes, expected.payloadBytes);
        ASSERT_EQ(got.check, expected.check);
        ASSERT_EQ(got.seen, expected.seen);
        ASSERT_EQ(got.credits, expected.credits);
        ASSERT_EQ(got.slot, expected.slot);
        ASSERT_EQ(std::string(reader.payload(), got.bytes),
                  payloadOf(n, got.bytes));
        (void)reader.publish();
        bounds = 0;
        n++;
        break;
      }
      case FrameReader::Event::kBound:
        ASSERT_TRUE(hasBound(n - 1) && bounds++ == 0) << n;
        ASSERT_NO_FATAL_FAILURE(expectBound(reader, n - 1));
        break;
      case FrameReader::Event::kNothing:
        (void)reader.publish();
        std::this_thread::yield();
        break;
      default:
        (void)reader.publish();
        ASSERT_STREQ(reader.error(), "");
    }
  }
  producer.join();
}

TEST(RingTest, AFullRingTakesNothingAndAsksToBeRung) {
  RingStorage storage(RingMemory::kMinCells, RingMemory::kMinBytes);
  RingProducer producer(storage.memory());
  RingConsumer consumer(storage.memory());
  char* place = nullptr;
  for (uint32_t i = 0; i < RingMemory::kMinCells; i++) {
    ASSERT_NE(producer.begin(0, &place), nullptr);
    (void)producer.commit();
  }
  EXPECT_EQ(producer.begin(0, &place), nullptr);
  EXPECT_FALSE(producer.armForRoom());
  ASSERT_NE(consumer.peek(), nullptr);
  for (uint32_t i = 0; i < RingMemory::kMinCells / 4; i++) {
    consumer.take(0);
  }
  EXPECT_TRUE(consumer.publish());
  EXPECT_NE(producer.begin(0, &place), nullptr);
}

TEST(RingTest, ASleepingConsumerIsRungOnce) {
  RingStorage storage(RingMemory::kMinCells, RingMemory::kMinBytes);
  RingProducer producer(storage.memory());
  RingConsumer consumer(storage.memory());
  char* place = nullptr;
  EXPECT_FALSE(consumer.arm());
  (void)producer.begin(0, &place);
  EXPECT_TRUE(producer.commit());
  (void)producer.begin(0, &place);
  EXPECT_FALSE(producer.commit());
  EXPECT_TRUE(consumer.arm()) << "a record is there: no sleep";
}

// By how it sleeps now, whatever it said before.
TEST(RingTest, ASleeperIsWokenAsItSleeps) {
  RingStorage storage(RingMemory::kMinCells, RingMemory::kMinBytes);
  RingProducer producer(storage.memory());
  RingConsumer consumer(storage.memory());
  const auto put = [&] {
    return producer.begin() != nullptr && producer.commit();
  };
  const auto read = [&] {
    consumer.take();
    (void)consumer.publish();
  };
  transport::base::FutexWords words;
  EXPECT_FALSE(consumer.arm(&words));
  EXPECT_TRUE(put());
  EXPECT_TRUE(producer.wake());
  read();
  consumer.disarm();
  EXPECT_FALSE(consumer.arm());
  EXPECT_TRUE(put());
  EXPECT_FALSE(producer.wake()) << "it sleeps in epoll";
  read();
  storage.memory().control->asleep.store(4711);  // what no consumer writes
  EXPECT_TRUE(put());
  EXPECT_FALSE(producer.wake());
}

TEST(RingTest, AProducerWithoutRoomIsWokenAsItSleeps) {
  RingStorage storage(RingMemory::kMinCells, RingMemory::kMinBytes);
  RingProducer producer(storage.memory());
  RingConsumer consumer(storage.memory());
  while (producer.begin() != nullptr) {
    (void)producer.commit();
  }
  transport::base::FutexWords words;
  EXPECT_FALSE(producer.armForRoom(&words));
  for (uint32_t i = 0; i < RingMemory::kMinCells / 4; i++) {
    consumer.take();
  }
  EXPECT_TRUE(consumer.publish());
  EXPECT_TRUE(consumer.wake());
}

// Whether the kernel can do it or not.
void sleepOn(const transport::base::FutexWords& words, Deadline limit) {
  if (transport::base::FutexWords::supported()) {
    EXPECT_TRUE(words.wait(limit));
  } else {
    std::this_thread::yield();
  }
}

// Each side sleeps as long as it takes, by turns on the flag and not at all.
TEST(RingTest, NobodySleepsOnAFlagForEver) {
  constexpr int kRecords = 30000;
  RingStorage storage(RingMemory::kMinCells, RingMemory::kMinBytes);
  const auto limit = Deadline::after(std::chrono::seconds(60));
  std::thread other([&] {
    RingProducer producer(storage.memory());
    transport::base::FutexWords words;
    for (int i = 0; i < kRecords && !limit.expired(); i++) {
      while (producer.begin() == nullptr && !limit.expired()) {
        words.clear();
        if (!producer.armForRoom(&words)) {
          sleepOn(words, limit);
        }
        producer.disarm();
      }
      if (producer.commit()) {
        EXPECT_TRUE(producer.wake());
      }
    }
  });
  RingConsumer consumer(storage.memory());
  transport::base::FutexWords words;
  int read = 0;
  while (read < kRecords && !limit.expired()) {
    if (consumer.peek() != nullptr) {
      consumer.take();
      read++;
      if (consumer.publish()) {
        EXPECT_TRUE(consumer.wake());
      }
      continue;
    }
    words.clear();
    if (!consumer.arm(&words)) {
      sleepOn(words, limit);
    }
    consumer.disarm();
  }
  other.join();
  EXPECT_EQ(read, kRecords);
}

TEST(RingTest, ImpossibleCountsAreNoticed) {
  RingStorage storage(RingMemory::kMinCells, RingMemory::kMinBytes);
  RingProducer producer(storage.memory());
  storage.memory().control->consumedCells.store(1000);
  char* place = nullptr;
  for (uint32_t i = 0; i <= RingMemory::kMinCells; i++) {
    if (producer.begin(0, &place) != nullptr) {
      (void)producer.commit();
    }
  }
  EXPECT_TRUE(producer.broken());
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
