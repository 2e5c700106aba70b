#include "transport/shm/memory_left.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <limits>
#include <new>
#include <optional>
#include <span>
#include <string_view>

#include "gloo/common/error.h"
#include "gloo/internal/cgroups.h"
#include "gloo/internal/fork.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

uint64_t sum(uint64_t a, uint64_t b) {
  return a > kUnlimited - b ? kUnlimited : a + b;
}

uint64_t difference(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

template <size_t N>
using Names = std::array<std::string_view, N>;

// The numbers behind these names, added up; nothing if there is none.
std::optional<uint64_t> sumOf(const std::string& path,
                              std::span<const std::string_view> names) {
  std::ifstream file(path);
  std::optional<uint64_t> all;
  for (std::string name; file >> name;) {
    uint64_t value = 0;
    if (std::find(names.begin(), names.end(), name) != names.end() &&
        file >> value) {
      all = sum(all.value_or(0), value);
    }
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return all;
}

// What a file of one number says. "max" is no number.
uint64_t numberIn(const std::string& path, uint64_t otherwise) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? value : otherwise;
}

// The names of a cgroup's files.
struct Version {
  const char* limit;
  const char* usage;
  // Of memory, or (second version) of memory and swap together.
  const char* swapLimit;
  const char* swapUsage;
  bool swapIsApart;
  // What the kernel drops, rather than end anybody: files in memory (those of
  // tmpfs, as ours are, count elsewhere), names of files.
  Names<3> dropped;
};

constexpr Version kFirst{"/memory.limit_in_bytes",
                         "/memory.usage_in_bytes",
                         "/memory.memsw.limit_in_bytes",
                         "/memory.memsw.usage_in_bytes",
                         false,
                         {"total_inactive_file", "total_active_file"}};
constexpr Version kSecond{"/memory.max",
                          "/memory.current",
                          "/memory.swap.max",
                          "/memory.swap.current",
                          true,
                          {"inactive_file", "active_file", "slab_reclaimable"}};

uint64_t leftIn(const std::string& group, const Version& version,
                uint64_t swap) {
  const auto left = [&](const char* limit, const char* usage, uint64_t more) {
    const uint64_t most = numberIn(group + limit, kUnlimited);
    return most == kUnlimited
               ? kUnlimited
               : sum(difference(most, numberIn(group + usage, 0)), more);
  };
  const uint64_t dropped =
      sumOf(group + "/memory.stat", version.dropped).value_or(0);
  if (version.swapIsApart) {
    swap = std::min(swap, left(version.swapLimit, version.swapUsage, 0));
    return left(version.limit, version.usage, sum(dropped, swap));
  }
  return std::min(left(version.limit, version.usage, sum(dropped, swap)),
                  left(version.swapLimit, version.swapUsage, dropped));
}

void require(uint64_t bytes, uint64_t left) {
  if (bytes > left) {
    GLOO_THROW_IO_EXCEPTION("cannot make ", bytes,
                            " bytes of shared memory: of this machine's, or"
                            " of this container's limit, ",
                            left,
                            " bytes are left; use less, free some, or raise the"
                            " limit (docs/shm.md says what needs how much)");
  }
}

}  // namespace

uint64_t memoryLeft(const std::string& root) {
  const std::string machine = root + "/proc/meminfo";
  const uint64_t swap =
      1024 * sumOf(machine, Names<1>{"SwapFree:"}).value_or(0);
  const auto available = sumOf(machine, Names<1>{"MemAvailable:"});
  uint64_t left = available ? sum(1024 * *available, swap) : kUnlimited;
  for (const internal::Cgroup& group : internal::cgroupsOf("memory", root)) {
    left = std::min(left, leftIn(group.directory,
                                 group.version == 1 ? kFirst : kSecond, swap));
  }
  return left;
}

MemoryBudget& MemoryBudget::instance() {
  return internal::instanceOfProcess<MemoryBudget>();
}

void MemoryBudget::confirm(uint64_t rest) { require(rest, memoryLeft(root_)); }

// Other ranks of the host take of it at the same time: those of 128 ranks have
// segments of 635 MiB together.
void MemoryBudget::take(uint64_t bytes) {
  constexpr uint64_t kPlenty = uint64_t{4} << 30;
  constexpr int64_t kFresh = 100;
  const int64_t now = std::chrono::duration_cast<std::chrono::milliseconds>(
                          std::chrono::steady_clock::now().time_since_epoch())
                          .count();
  uint64_t left = left_.load(std::memory_order_relaxed);
  const bool fresh = now - readAt_.load(std::memory_order_relaxed) < kFresh;
  if (!fresh || left < sum(kPlenty, bytes)) {
    try {
      left = memoryLeft(root_);
    } catch (const std::bad_alloc&) {
      return;  // the kernel refuses the rest, too, and says which limit it is
    }
    readAt_.store(now, std::memory_order_relaxed);
  }
  require(bytes, left);
  left_.store(left == kUnlimited ? left : left - bytes,
              std::memory_order_relaxed);
}

}  // namespace transport::shm
GLOO_NAMESPACE_END
