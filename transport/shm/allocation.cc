#include "transport/shm/allocation.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "gloo/common/error.h"
#include "gloo/common/logging.h"
#include "gloo/internal/direct.h"
#include "gloo/transport/shm/allocate.h"
#include "transport/shm/segment.h"

GLOO_NAMESPACE_BEGIN
namespace transport {
namespace shm {
namespace {

constexpr size_t kMaxAlignment = size_t{1} << 30;
constexpr char kMagic[8] = {'G', 'L', 'O', 'O', 'm', 'e', 'm', '1'};

uint64_t makeId() {
  uint64_t id = 0;
  while (id == 0 || id == internal::Place::kOrdinary) {
    const Secret secret = makeSecret();
    std::memcpy(&id, secret.data(), sizeof(id));
  }
  return id;
}

}  // namespace

std::shared_ptr<Allocation> Allocation::make(size_t bytes, size_t alignment) {
  const size_t page = pageBytes();
  const size_t whole = (bytes + page - 1) / page * page;
  auto memory = std::make_unique<SealedMemory>(whole + page, alignment);
  const uint64_t id = makeId();
  std::shared_ptr<Allocation> made(
      new Allocation(std::move(memory), whole, id));
  std::memcpy(made->label().magic, kMagic, sizeof(kMagic));
  made->label().id = id;
  return made;
}

std::shared_ptr<Allocation> Allocation::borrow(base::UniqueFd memory,
                                               uint64_t id) {
  const size_t all = SealedMemory::sizeOf(memory);
  if (all < 2 * pageBytes() || all % pageBytes() != 0) {
    GLOO_THROW_IO_EXCEPTION("The peer has handed over ", all,
                            " bytes, which is no shared memory of ours");
  }
  std::shared_ptr<Allocation> borrowed(
      new Allocation(std::make_unique<SealedMemory>(std::move(memory), all),
                     all - pageBytes(), id));
  const Label& label = borrowed->label();
  if (std::memcmp(label.magic, kMagic, sizeof(kMagic)) != 0 || label.id != id) {
    GLOO_THROW_IO_EXCEPTION(
        "The memory that was handed over is not the one that the peer has"
        " announced");
  }
  return borrowed;
}

int Allocation::descriptor() const {
  return inherited() ? -1 : memory_->descriptor();
}

void Allocation::withdraw(size_t offset, size_t bytes) noexcept {
  const MutexLock lock(withdrawing_);
  label().withdrawn.store(1, std::memory_order_relaxed);
  if (!memory_->makePrivate(offset, offset + bytes)) {
    GLOO_ERROR("other ranks may still write to ", bytes,
               " bytes of shared memory, although an operation has failed: ",
               base::errnoText(errno));
  }
}

bool Allocation::isPrivate(size_t offset, size_t bytes) {
  const MutexLock lock(withdrawing_);
  return memory_->isPrivate(offset, offset + bytes);
}

void Allocation::free() noexcept {
  label().freed.store(1, std::memory_order_relaxed);
  // A hole: the size is sealed. Who still reads there finds zeros.
  if (::fallocate(memory_->descriptor(),
                  FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                  static_cast<off_t>(bytes_)) != 0) {
    GLOO_WARN("shared memory is given back only when all have unmapped it: ",
              base::errnoText(errno));
  }
  memory_->close();
}

// ---- The public side

Memory::Memory() noexcept = default;

Memory::Memory(Memory&& other) noexcept
    : allocation_(std::move(other.allocation_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  if (this != &other) {
    release();
    allocation_ = std::move(other.allocation_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

Memory::~Memory() { release(); }

void Memory::release() noexcept {
  if (allocation_ != nullptr && !allocation_->inherited()) {
    base::SharedAllocations::instance().remove(*allocation_);
    allocation_->free();
  }
  allocation_.reset();
}

Memory allocate(size_t bytes, size_t alignment) {
  GLOO_ENFORCE(bytes > 0, "shm::allocate: 0 bytes");
  GLOO_ENFORCE(std::has_single_bit(alignment) && alignment <= kMaxAlignment,
               "shm::allocate: an alignment of ", alignment,
               " bytes; it must be a power of two, at most 1 GiB");
  GLOO_ENFORCE(bytes <= std::numeric_limits<off_t>::max() - 2 * kMaxAlignment,
               "shm::allocate: ", bytes, " bytes");
  Memory memory;
  memory.allocation_ = Allocation::make(bytes, alignment);
  base::SharedAllocations::instance().add(memory.allocation_);
  memory.data_ = memory.allocation_->data();
  memory.size_ = bytes;
  return memory;
}

}  // namespace shm
}  // namespace transport
GLOO_NAMESPACE_END
