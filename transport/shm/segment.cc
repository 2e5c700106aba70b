#include "transport/shm/segment.h"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gloo/common/error.h"
#include "transport/base/topology.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {
namespace {

constexpr char kMagic[8] = {'G', 'L', 'O', 'O', 's', 'h', 'm', '2'};
constexpr size_t kMemoryPerRank = size_t{8} << 20;
// More did not make anything faster, and would leave the L2 cache.
constexpr uint32_t kMaxRingBytes = 256 << 10;
constexpr uint32_t kBytesPerCell = 1024;
// The first page.
struct Header {
  char magic[sizeof(kMagic)];
  Secret secret;
  uint32_t cells;
  uint32_t bytes;
};

// What a ring holds lies where it is received, and the first one is the maker's
// output.
void placePages(char* memory, size_t bytes, const Homes& homes) {
  const size_t half = bytes / 2 / pageBytes() * pageBytes();
  const base::Topology& topology = base::Topology::instance();
  topology.place(memory, half, homes.taker);
  topology.place(memory + half, bytes - half, homes.maker);
}

}  // namespace

Secret makeSecret() {
  Secret secret;
  while (::getrandom(secret.data(), secret.size(), 0) !=
         static_cast<ssize_t>(secret.size())) {
    if (errno != EINTR) {
      GLOO_THROW_IO_EXCEPTION("getrandom: ", base::errnoText(errno));
    }
  }
  return secret;
}

RingSize ringSizeFor(int peers) {
  const size_t share =
      kMemoryPerRank / 2 / static_cast<size_t>(std::max(peers, 1));
  const auto bytes = static_cast<uint32_t>(std::clamp<size_t>(
      std::bit_floor(share), RingMemory::kMinBytes, kMaxRingBytes));
  return {std::max(bytes / kBytesPerCell, RingMemory::kMinCells), bytes};
}

size_t segmentBytes(RingSize size) {
  const size_t page = pageBytes();
  const size_t bytes = page + 2 * RingMemory::size(size.cells, size.bytes);
  return (bytes + page - 1) / page * page;
}

Segment::Segment(std::unique_ptr<SealedMemory> memory, RingSize size)
    : memory_(std::move(memory)), size_(size) {}

std::shared_ptr<Segment> Segment::create(RingSize size, const Secret& secret,
                                         const Homes& homes) {
  std::shared_ptr<Segment> segment(
      new Segment(std::make_unique<SealedMemory>(segmentBytes(size)), size));
  placePages(segment->memory_->data(), segmentBytes(size), homes);
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.secret = secret;
  header.cells = size.cells;
  header.bytes = size.bytes;
  std::memcpy(segment->memory_->data(), &header, sizeof(header));
  return segment;
}

std::shared_ptr<Segment> Segment::adopt(base::UniqueFd memory, RingSize size,
                                        const Secret& secret) {
  std::shared_ptr<Segment> segment(new Segment(
      std::make_unique<SealedMemory>(std::move(memory), segmentBytes(size)),
      size));
  Header header;
  std::memcpy(&header, segment->memory_->data(), sizeof(header));
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 ||
      header.secret != secret || header.cells != size.cells ||
      header.bytes != size.bytes) {
    GLOO_THROW_IO_EXCEPTION(
        "The shared memory that was handed over is not the one that the peer"
        " has announced");
  }
  return segment;
}

RingMemory Segment::ring(bool first) const {
  char* at = memory_->data() + pageBytes() +
             (first ? 0 : RingMemory::size(size_.cells, size_.bytes));
  RingMemory ring;
  ring.cellCount = size_.cells;
  ring.byteCount = size_.bytes;
  ring.control = reinterpret_cast<RingControl*>(at);
  ring.cells = reinterpret_cast<Cell*>(at + sizeof(RingControl));
  ring.bytes = at + sizeof(RingControl) + size_.cells * sizeof(Cell);
  return ring;
}

}  // namespace transport::shm
GLOO_NAMESPACE_END
