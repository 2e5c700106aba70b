#include <gtest/gtest.h>

#include <cstring>

#include "tests/transport/shm/harness.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace transport::shm;  // NOLINT
using transport::base::FrameHeader;
using transport::base::ShortMessage;

std::string secondLineOf(const Cell& cell) {
  return {cell.body + Cell::kHeadAt, kLine};
}

TEST(RecordTest, AShortMessageRidesInTheLineOfItsFlag) {
  RingStorage storage(RingMemory::kMinCells, RingMemory::kMinBytes);
  FrameWriter writer(storage.memory());
  const std::string payload(kInlineBytes, 'x');
  FrameProgress progress;
  bool ring = false;
  ASSERT_EQ(
      writer.step(eager(1, payload.size()), payload.data(), progress, &ring),
      FrameWriter::Step::kDone);
  const Cell& cell = storage.memory().cells[0];
  const char* line = reinterpret_cast<const char*>(&cell);
  EXPECT_NE(std::string(line, kLine).find(payload), std::string::npos);
  EXPECT_EQ(secondLineOf(cell), std::string(kLine, '\0'));
  EXPECT_EQ(*storage.memory().bytes, '\0');
}

TEST(RecordTest, ALongerOneTakesTheSecondLineOfItsCell) {
  for (const uint64_t check : {0, 1}) {
    RingStorage storage(RingMemory::kMinCells, RingMemory::kMinBytes);
    FrameWriter writer(storage.memory());
    ShortMessage message;
    message.number = 1;
    message.check = check;
    message.bytes = kSmallBytes - (check != 0 ? sizeof(check) : 0);
    bool ring = false;
    const std::string payload(message.bytes, 'x');
    ASSERT_TRUE(writer.message(message, payload.data(), &ring));
    EXPECT_EQ(secondLineOf(storage.memory().cells[0]), std::string(kLine, 'x'));
    EXPECT_EQ(*storage.memory().bytes, '\0');
  }
}

TEST(RecordTest, AShortMessageIsOneCellAndWhatLiesBesideIt) {
  for (const uint64_t check : {0, 1}) {
    RingStorage storage(RingMemory::kMinCells, RingMemory::kMinBytes);
    FrameWriter writer(storage.memory());
    FrameReader reader(storage.memory(), 1 << 20);
    for (uint32_t n = 1; n <= 100; n++) {
      ShortMessage message;
      message.number = n;
      message.check = check;
      message.bytes = n % 2 != 0 ? kShortBytes : kSmallBytes + 1;
      bool ring = false;
      const std::string payload(message.bytes, static_cast<char>(n));
      ASSERT_TRUE(writer.message(message, payload.data(), &ring));
      EXPECT_EQ(secondLineOf(storage.memory().cells[0]),
                std::string(kLine, '\0'));
      ASSERT_EQ(reader.next(), FrameReader::Event::kMessage);
      EXPECT_EQ(reader.message().check, check);
      EXPECT_TRUE(std::string(reader.payload(), reader.message().bytes) ==
                  payload);
      (void)reader.publish();
    }
    ShortMessage message;
    message.number = 101;
    message.bytes = kShortBytes + 1;
    bool ring = false;
    const std::string payload(message.bytes, 'x');
    EXPECT_FALSE(writer.message(message, payload.data(), &ring));
  }
}

TEST(RecordTest, ABoundWriteIsOneLineOrTwo) {
  constexpr size_t kOfOneLine = kBoundBytes - kLine;
  for (const size_t bytes : {kOfOneLine, kBoundBytes}) {
    RingStorage storage(RingMemory::kMinCells, RingMemory::kMinBytes);
    FrameWriter writer(storage.memory());
    FrameReader reader(storage.memory(), 1 << 20);
    const std::string payload(bytes, 'x');
    EXPECT_EQ(reader.next(), FrameReader::Event::kNothing);
    bool ring = false;
    ASSERT_TRUE(
        writer.bound(7, uint64_t{5} << 40, payload.data(), bytes, &ring));
    EXPECT_EQ(secondLineOf(storage.memory().cells[0]),
              std::string(kLine, bytes == kOfOneLine ? '\0' : 'x'));
    ASSERT_EQ(reader.next(), FrameReader::Event::kBound);
    const FrameReader::BoundWrite& got = reader.boundWrite();
    EXPECT_EQ(got.index, 7u);
    EXPECT_EQ(got.offset, uint64_t{5} << 40);
    EXPECT_EQ(std::string(got.payload, got.bytes), payload);
    EXPECT_EQ(reader.next(), FrameReader::Event::kNothing);
  }
}

// Neither changes what the other's headers are reckoned from.
TEST(RecordTest, BoundWritesAndMessagesMayAlternate) {
  RingStorage storage(RingMemory::kMinCells, RingMemory::kMinBytes);
  FrameWriter writer(storage.memory());
  FrameReader reader(storage.memory(), 1 << 20);
  for (uint64_t n = 1; n <= 100; n++) {
    FrameHeader header = eager(n, 3);
    header.seen = static_cast<uint32_t>(n / 2);
    FrameProgress progress;
    bool ring = false;
    ASSERT_EQ(writer.step(header, "abc", progress, &ring),
              FrameWriter::Step::kDone);
    ASSERT_TRUE(writer.bound(1, n, "xyz", 3, &ring));
    ASSERT_EQ(reader.next(), FrameReader::Event::kMessage);
    EXPECT_EQ(reader.message().number, n);
    EXPECT_EQ(reader.message().seen, n / 2);
    EXPECT_EQ(std::string(reader.payload(), reader.message().bytes), "abc");
    ASSERT_EQ(reader.next(), FrameReader::Event::kBound);
    EXPECT_EQ(reader.boundWrite().offset, n);
    (void)reader.publish();
  }
}

TEST(RecordTest, ABoundWriteThatIsTooLongIsAnError) {
  RingStorage storage(RingMemory::kMinCells, RingMemory::kMinBytes);
  FrameWriter writer(storage.memory());
  FrameReader reader(storage.memory(), 1 << 20);
  bool ring = false;
  ASSERT_TRUE(writer.bound(1, 0, "xyz", 3, &ring));
  storage.memory().cells[0].length = kBoundBytes + 1;
  EXPECT_EQ(reader.next(), FrameReader::Event::kBroken);
}

TEST(RecordTest, AShortMessageThatIsTooLongIsAnError) {
  for (const uint32_t bytes :
       {uint32_t{kShortBytes + 1}, ~uint32_t{0}, 1001u}) {
    RingStorage storage(RingMemory::kMinCells, RingMemory::kMinBytes);
    FrameWriter writer(storage.memory());
    FrameReader reader(storage.memory(), 1000);
    ShortMessage message;
    message.number = 1;
    message.bytes = 1000;
    bool ring = false;
    const std::string payload(message.bytes, 'x');
    ASSERT_TRUE(writer.message(message, payload.data(), &ring));
    std::memcpy(storage.memory().cells[0].body + 16, &bytes, sizeof(bytes));
    EXPECT_EQ(reader.next(), FrameReader::Event::kBroken) << bytes;
  }
}

TEST(RecordTest, ASmallMessageThatIsTooLongIsAnError) {
  for (const uint64_t check : {0, 1}) {
    RingStorage storage(RingMemory::kMinCells, RingMemory::kMinBytes);
    FrameWriter writer(storage.memory());
    FrameReader reader(storage.memory(), 1 << 20);
    ShortMessage message;
    message.number = 1;
    message.check = check;
    message.bytes = 3;
    bool ring = false;
    ASSERT_TRUE(writer.message(message, "xyz", &ring));
    const size_t most = kSmallBytes - (check != 0 ? sizeof(check) : 0);
    storage.memory().cells[0].length = static_cast<uint8_t>(most + 1);
    EXPECT_EQ(reader.next(), FrameReader::Event::kBroken);
  }
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
