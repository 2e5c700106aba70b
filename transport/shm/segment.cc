#include "transport/shm/segment.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "gloo/common/error.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {
namespace {

constexpr char kMagic[8] = {'G', 'L', 'O', 'O', 's', 'h', 'm', '1'};
constexpr size_t kPage = 4096;
constexpr size_t kMemoryPerRank = size_t{8} << 20;
// More did not make anything faster, and would leave the L2 cache.
constexpr uint32_t kMaxRingBytes = 256 << 10;
constexpr uint32_t kBytesPerCell = 1024;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// The first page.
struct Header {
  char magic[sizeof(kMagic)];
  Secret secret;
  uint32_t cells;
  uint32_t bytes;
};

[[noreturn]] void fail(const char* call, size_t bytes, const char* remedy) {
  const int error = errno;
  GLOO_THROW_IO_EXCEPTION(
      "cannot make ", bytes, " bytes of shared memory: ", call, ": ",
      base::errnoText(error), remedy, base::errnoRemedy(error));
}

constexpr const char* kMemoryRemedy =
    " (is memory left, also in this container's limit? fewer ranks on this"
    " host need less, see docs/shm.md)";
constexpr const char* kMapRemedy =
    " (raise the limits of address space, ulimit -v, and of mappings,"
    " vm.max_map_count)";

// A file beyond this limit would end the process by a signal.
void checkFileLimit(size_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes) {
    errno = EFBIG;
    fail("memfd", bytes, " (raise the limit of file sizes, ulimit -f)");
  }
}

void checkSealed(int memory, size_t bytes) {
  struct stat status {};
  struct statfs system {};
  const int seals = ::fcntl(memory, F_GET_SEALS);
  const bool sealed = seals >= 0 && (seals & kSeals) == kSeals;
  const bool ours = ::fstat(memory, &status) == 0 &&
                    ::fstatfs(memory, &system) == 0 &&
                    system.f_type == TMPFS_MAGIC && S_ISREG(status.st_mode);
  if (!sealed || !ours || status.st_size != static_cast<off_t>(bytes) ||
      static_cast<size_t>(status.st_blocks) * 512 < bytes) {
    GLOO_THROW_IO_EXCEPTION(
        "The peer has handed over memory that is not a sealed segment of ",
        bytes, " bytes: it runs another program or is broken");
  }
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
  const size_t bytes = kPage + 2 * RingMemory::size(size.cells, size.bytes);
  return (bytes + kPage - 1) / kPage * kPage;
}

Segment::Segment(base::UniqueFd memory, RingSize size)
    : memory_(std::move(memory)), size_(size), bytes_(segmentBytes(size)) {
  // Populated: the first messages should not wait for page faults.
  void* base = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_POPULATE, memory_.get(), 0);
  if (base == MAP_FAILED) {
    fail("mmap", bytes_, kMapRemedy);
  }
  base_ = static_cast<char*>(base);
}

Segment::~Segment() { ::munmap(base_, bytes_); }

std::shared_ptr<Segment> Segment::create(RingSize size, const Secret& secret) {
  const size_t bytes = segmentBytes(size);
  checkFileLimit(bytes);
  base::UniqueFd memory(
      ::memfd_create("gloo", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) {
    fail("memfd_create", bytes, "");
  }
  // By default anybody may open it, through /proc, who may look at us.
  if (::fchmod(memory.get(), S_IRUSR | S_IWUSR) != 0) {
    fail("fchmod", bytes, "");
  }
  if (const int error =
          ::posix_fallocate(memory.get(), 0, static_cast<off_t>(bytes));
      error != 0) {
    errno = error;
    fail("fallocate", bytes, kMemoryRemedy);
  }
  if (::fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0) {
    fail("F_ADD_SEALS", bytes, "");
  }
  std::shared_ptr<Segment> segment(new Segment(std::move(memory), size));
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.secret = secret;
  header.cells = size.cells;
  header.bytes = size.bytes;
  std::memcpy(segment->base_, &header, sizeof(header));
  return segment;
}

std::shared_ptr<Segment> Segment::adopt(base::UniqueFd memory, RingSize size,
                                        const Secret& secret) {
  checkSealed(memory.get(), segmentBytes(size));
  std::shared_ptr<Segment> segment(new Segment(std::move(memory), size));
  segment->close();
  Header header;
  std::memcpy(&header, segment->base_, sizeof(header));
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
  char* at =
      base_ + kPage + (first ? 0 : RingMemory::size(size_.cells, size_.bytes));
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
