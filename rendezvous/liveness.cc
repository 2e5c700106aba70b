#include "rendezvous/liveness.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

namespace {

std::atomic<uint64_t> lastEnd{0};

// When this process began: field 22 of /proc/self/stat, in clock ticks since
// boot (proc(5)). Not cached: a forked child began later.
uint64_t processBegan() {
  std::ifstream file("/proc/self/stat");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const size_t afterName = text.rfind(')');
  if (afterName == std::string::npos) {
    return wallClockMicroseconds();
  }
  std::istringstream in(text.substr(afterName + 1));
  std::string skipped;
  for (int field = 3; field < 22; field++) {
    in >> skipped;
  }
  uint64_t ticks = 0;
  in >> ticks;
  timespec boot{};
  clock_gettime(CLOCK_BOOTTIME, &boot);
  const auto sinceBoot = static_cast<uint64_t>(boot.tv_sec) * 1000000 +
                         static_cast<uint64_t>(boot.tv_nsec) / 1000;
  const uint64_t began =
      ticks * 1000000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  return wallClockMicroseconds() - (sinceBoot - std::min(began, sinceBoot));
}

}  // namespace

uint64_t wallClockMicroseconds() {
  using std::chrono::microseconds;
  return static_cast<uint64_t>(
      std::chrono::duration_cast<microseconds>(
          std::chrono::system_clock::now().time_since_epoch())
          .count());
}

bool isOfThisRun(uint64_t writtenAt) {
  return writtenAt > std::max(processBegan(), lastEnd.load());
}

void endOfRun() { lastEnd = wallClockMicroseconds(); }

}  // namespace rendezvous
GLOO_NAMESPACE_END
