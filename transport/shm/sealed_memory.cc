#include "transport/shm/sealed_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "gloo/common/error.h"
#include "transport/shm/memory_left.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

[[noreturn]] void fail(const char* call, size_t bytes, const char* remedy) {
  const int error = errno;
  GLOO_THROW_IO_EXCEPTION("cannot make ", bytes,
                          " bytes of shared memory: ", call, ": ",
                          base::errnoText(error),
                          *remedy != '\0' ? remedy : base::errnoRemedy(error));
}

// Of what a peer has handed over: the first messages should not wait for page
// faults, nor the progress of all others for those of a large vector. (Lanes of
// a crowd are 32 MiB and a few pages.)
constexpr size_t kMostPopulated = size_t{33} << 20;

constexpr const char* kMemoryRemedy =
    " (is memory left, also in this container's limit? docs/shm.md says what"
    " needs how much)";
constexpr const char* kMapRemedy =
    " (raise the limits of address space, ulimit -v, and of mappings,"
    " vm.max_map_count)";

// Of a call that old kernels and the filters of some containers do not know.
const char* filterRemedy() {
  const bool forbidden = errno == EPERM || errno == EACCES || errno == ENOSYS;
  return forbidden ? " (a filter of system calls, as containers have, or the"
                     " kernel forbids it: allow memfd_create and its seals, or"
                     " do without shared memory: GLOO_TCP_SHM=0 for a tcp"
                     " device, GLOO_AUTO_LINKS=tcp for the automatic one)"
                   : "";
}

// A file beyond this limit would end the process by a signal.
void checkFileLimit(size_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes) {
    errno = EFBIG;
    fail("memfd", bytes, " (raise the limit of file sizes, ulimit -f)");
  }
}

// By small pieces: a signal makes older kernels give a piece up, and undo it.
void allocateAll(int memory, size_t bytes) {
  constexpr size_t kPiece = 64 << 10;
  // What takes some ten milliseconds: other ranks may do the same meanwhile.
  constexpr size_t kConfirmed = 64 << 20;
  for (size_t at = 0; at < bytes; at += kPiece) {
    if (at > 0 && at % kConfirmed == 0) {
      MemoryBudget::instance().confirm(bytes - at);
    }
    int error = EINTR;
    while (error == EINTR) {
      error =
          ::posix_fallocate(memory, static_cast<off_t>(at),
                            static_cast<off_t>(std::min(kPiece, bytes - at)));
    }
    if (error != 0) {
      errno = error;
      fail("fallocate", bytes, kMemoryRemedy);
    }
  }
}

// Never to be executed: vm.memfd_noexec=2 refuses whatever does not say so.
// Kernels before 6.3 do not know that, nor do the headers of some systems.
base::UniqueFd makeFile() {
  constexpr unsigned kNoExecSeal = 8;  // MFD_NOEXEC_SEAL
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  base::UniqueFd memory(::memfd_create("gloo", kFlags | kNoExecSeal));
  if (!memory && errno == EINVAL) {
    memory = base::UniqueFd(::memfd_create("gloo", kFlags));
  }
  return memory;
}

base::UniqueFd make(size_t bytes) {
  // The kernel would fill what is left before it refuses the rest, and ends the
  // process where that is less than the machine's.
  MemoryBudget::instance().take(bytes);
  checkFileLimit(bytes);
  base::UniqueFd memory = makeFile();
  if (!memory) {
    fail("memfd_create", bytes, filterRemedy());
  }
  // By default anybody may open it, through /proc, who may look at us.
  if (::fchmod(memory.get(), S_IRUSR | S_IWUSR) != 0) {
    fail("fchmod", bytes, "");
  }
  allocateAll(memory.get(), bytes);
  if (::fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0) {
    fail("F_ADD_SEALS", bytes, filterRemedy());
  }
  return memory;
}

void unmap(char* begin, char* end) {
  if (begin < end) {
    ::munmap(begin, static_cast<size_t>(end - begin));
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
  if (!sealed || !ours || status.st_size != static_cast<off_t>(bytes)) {
    GLOO_THROW_IO_EXCEPTION(
        "The peer has handed over memory that is not a sealed segment of ",
        bytes, " bytes: it runs another program or is broken");
  }
  // Its pages go when its owner frees it, whoever has it mapped.
  if (static_cast<size_t>(status.st_blocks) * 512 < bytes) {
    GLOO_THROW_IO_EXCEPTION("The peer has handed over a segment of ", bytes,
                            " bytes without all of its memory: it has freed "
                            "it since, or is broken");
  }
}

}  // namespace

SealedMemory::SealedMemory(size_t bytes, size_t alignment)
    : memory_(make(bytes)), bytes_(bytes) {
  map(alignment, true);
}

SealedMemory::SealedMemory(base::UniqueFd memory, size_t bytes)
    : memory_(std::move(memory)), bytes_(bytes) {
  checkSealed(memory_.get(), bytes);
  map(1, bytes <= kMostPopulated);
  close();
}

size_t SealedMemory::sizeOf(const base::UniqueFd& memory) {
  struct stat status {};
  return ::fstat(memory.get(), &status) == 0 && status.st_size > 0
             ? static_cast<size_t>(status.st_size)
             : 0;
}

void SealedMemory::map(size_t alignment, bool populate) {
  char* place = nullptr;
  char* reserved = nullptr;
  if (alignment > pageBytes()) {
    void* const room = ::mmap(nullptr, bytes_ + alignment, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) {
      fail("mmap", bytes_, kMapRemedy);
    }
    reserved = static_cast<char*>(room);
    const auto address = reinterpret_cast<uintptr_t>(reserved);
    place = reserved + (alignment - address % alignment) % alignment;
  }
  void* const base = ::mmap(place, bytes_, PROT_READ | PROT_WRITE,
                            MAP_SHARED | (populate ? MAP_POPULATE : 0) |
                                (place != nullptr ? MAP_FIXED : 0),
                            memory_.get(), 0);
  const int error = errno;
  if (place != nullptr) {
    // What is left of the room on both sides, or all of it.
    char* const end = base == MAP_FAILED ? place : place + bytes_;
    unmap(reserved, place);
    unmap(end, reserved + bytes_ + alignment);
  }
  if (base == MAP_FAILED) {
    errno = error;
    fail("mmap", bytes_, kMapRemedy);
  }
  data_ = static_cast<char*>(base);
}

// (A page that is mapped again would lose what its owner has written since.)
bool SealedMemory::makePrivate(size_t begin, size_t end) noexcept {
  const size_t pageSize = pageBytes();
  const size_t last = (std::min(end, bytes_) + pageSize - 1) / pageSize;
  try {
    private_.resize(bytes_ / pageSize);
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
    return false;
  }
  for (size_t page = begin / pageSize; page < last;) {
    size_t next = page + 1;
    while (next < last && private_[next] == private_[page]) {
      next++;
    }
    if (!private_[page] && !copyPages(page, next)) {
      return false;
    }
    page = next;
  }
  return true;
}

bool SealedMemory::isPrivate(size_t begin, size_t end) const {
  const size_t pageSize = pageBytes();
  const auto at = [&](size_t page) {
    return private_.begin() +
           static_cast<ptrdiff_t>(std::min(page, private_.size()));
  };
  const auto last = at((end + pageSize - 1) / pageSize);
  return std::find(at(begin / pageSize), last, true) != last;
}

bool SealedMemory::copyPages(size_t first, size_t last) noexcept {
  const size_t pageSize = pageBytes();
  char* const at = data_ + first * pageSize;
  const size_t bytes = (last - first) * pageSize;
  const auto offset = static_cast<off_t>(first * pageSize);
  const auto map = [&](int flags) {
    return ::mmap(at, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED,
                  memory_.get(), offset) != MAP_FAILED;
  };
  if (!map(MAP_PRIVATE)) {
    // Where memory is not overcommitted, kernels before 6.12 find that it does
    // not suffice when they have unmapped the pages. (A shared mapping takes
    // none.)
    map(MAP_SHARED);
    return false;
  }
  // The first write copies a page. This one changes nothing, even where another
  // thread writes as well. (Compilers drop an "or" with 0.) A comparison that
  // fails need not write.
  for (size_t i = 0; i < bytes; i += pageSize) {
    char same = __atomic_load_n(at + i, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(at + i, &same, same, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
  }
  std::fill(private_.begin() + static_cast<ptrdiff_t>(first),
            private_.begin() + static_cast<ptrdiff_t>(last), true);
  return true;
}

SealedMemory::~SealedMemory() { ::munmap(data_, bytes_); }

}  // namespace transport::shm
GLOO_NAMESPACE_END
