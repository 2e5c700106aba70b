// What a hostile peer may write into a shared ring: cells with any contents.
#include <algorithm>
#include <cstring>
#include <memory>

#include "tests/fuzz/target.h"
#include "transport/shm/record.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace transport::shm;  // NOLINT
using transport::base::FrameHeader;
using transport::base::FrameType;

constexpr uint32_t kCells = 16;
constexpr uint32_t kBytes = 4096;
constexpr size_t kMaxPayload = 3000;
constexpr size_t kRecord = 4 + Cell::kBodyBytes;

struct Memory {
  RingControl control{};
  Cell cells[kCells]{};
  char bytes[kBytes]{};

  RingMemory ring() { return {&control, cells, bytes, kCells, kBytes}; }
};

void readAll(FrameReader& reader, char* place) {
  for (int i = 0; i < 10000; i++) {
    const auto& write = reader.boundWrite();
    switch (reader.next()) {
      case FrameReader::Event::kBound:
        require(write.bytes <= kBoundBytes, "within the line");
        std::memcpy(place, write.payload, write.bytes);
        break;
      case FrameReader::Event::kMessage:
        require(reader.message().bytes <= kMaxPayload, "within limits");
        std::memcpy(place, reader.payload(), reader.message().bytes);
        break;
      case FrameReader::Event::kPayload:
        require(reader.header().payloadBytes <= kMaxPayload, "within limits");
        reader.setPlace(place);
        break;
      case FrameReader::Event::kNothing:
      case FrameReader::Event::kEnd:
      case FrameReader::Event::kBroken:
        return;
      default:
        break;
    }
  }
  require(false, "a ring has an end");
}

// Each record of the input becomes the next cell.
void run(const char* data, size_t bytes) {
  auto memory = std::make_unique<Memory>();
  auto place = std::make_unique<char[]>(kMaxPayload);
  FrameReader reader(memory->ring(), kMaxPayload);
  for (uint32_t n = 0; bytes > 0; n++) {
    Cell& cell = memory->cells[n % kCells];
    const size_t part = std::min(bytes, kRecord);
    std::memcpy(&cell.kind, data, std::min<size_t>(part, 4));
    if (part > 4) {
      std::memcpy(cell.body, data + 4, part - 4);
    }
    cell.sequence.store(n + 1);
    data += part;
    bytes -= part;
    if (n % 3 == 2) {
      readAll(reader, place.get());
      (void)reader.publish();
    }
  }
  readAll(reader, place.get());
}

// What a writer makes of frames is what a reader must take.
std::vector<std::vector<char>> seeds() {
  std::vector<std::vector<char>> all;
  for (const size_t size : {0, 8, 48, 49, 500, 2500}) {
    auto memory = std::make_unique<Memory>();
    FrameWriter writer(memory->ring());
    const std::vector<char> payload(size, 'x');
    for (uint64_t number = 1; number <= 2; number++) {
      FrameHeader header;
      header.type = FrameType::kData;
      header.flags = 3;
      header.number = number;
      header.slot = 7;
      header.bytes = size;
      header.payloadBytes = static_cast<uint32_t>(size);
      header.check = number - 1;
      FrameProgress progress;
      bool ring = false;
      while (writer.step(header, payload.data(), progress, &ring) ==
             FrameWriter::Step::kMore) {
      }
      if (size <= kBoundBytes) {
        (void)writer.bound(3, size, payload.data(), size, &ring);
      }
    }
    std::vector<char> seed;
    for (const Cell& cell : memory->cells) {
      const char* at = reinterpret_cast<const char*>(&cell.kind);
      if (cell.sequence.load() != 0) {
        seed.insert(seed.end(), at, at + kRecord);
      }
    }
    all.push_back(seed);
  }
  return all;
}

const AddFuzzTarget added({"ring", &run, seeds()});

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
