// What a hostile peer may claim to have consumed of a shared ring.
#include <cstring>
#include <memory>

#include "tests/fuzz/target.h"
#include "transport/shm/ring.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace transport::shm;  // NOLINT

constexpr uint32_t kCells = 16;
constexpr uint32_t kBytes = 4096;
constexpr size_t kRound = 17;  // two counts and a length

struct Memory {
  RingControl control{};
  Cell cells[kCells]{};
  char bytes[kBytes]{};

  RingMemory ring() { return {&control, cells, bytes, kCells, kBytes}; }
};

void run(const char* data, size_t bytes) {
  auto memory = std::make_unique<Memory>();
  RingProducer producer(memory->ring());
  for (; bytes >= kRound && !producer.broken(); bytes -= kRound) {
    const size_t chunk = static_cast<uint8_t>(data[16]) * size_t{4};
    char* place = nullptr;
    if (producer.begin(chunk, &place) != nullptr) {
      require(place >= memory->bytes &&
                  place + chunk <= memory->bytes + sizeof(memory->bytes),
              "within the ring");
      std::memset(place, 1, chunk);
      (void)producer.commit();
    }
    uint64_t counts[2];
    std::memcpy(counts, data, sizeof(counts));
    memory->control.consumedCells.store(counts[0]);
    memory->control.consumedBytes.store(counts[1]);
    data += kRound;
  }
}

// Rounds in which the consumer keeps up.
std::vector<char> seed(uint64_t bytesEach) {
  std::vector<char> all;
  for (uint64_t i = 1; i <= 40; i++) {
    const uint64_t counts[2] = {i, i * ((bytesEach + 63) / 64 * 64)};
    const char* at = reinterpret_cast<const char*>(counts);
    all.insert(all.end(), at, at + sizeof(counts));
    all.push_back(static_cast<char>(bytesEach / 4));
  }
  return all;
}

const AddFuzzTarget added({"ring_counts",
                           &run,
                           {seed(0), seed(64), seed(512)}});

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
