#include "rendezvous/liveness.h"

#include <pthread.h>
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
std::atomic<bool> hasFailed{false};

// A moment in this process: when the library was loaded, or fork() returned.
struct FirstSeen {
  pid_t pid = 0;
  uint64_t at = 0;
};
FirstSeen firstSeen;

void seeProcess() { firstSeen = {::getpid(), wallClockMicroseconds()}; }

// At load time, and in each forked child.
[[maybe_unused]] const int installed =
    (seeProcess(), pthread_atfork(nullptr, nullptr, &seeProcess));

// When this process began, or a little later, never earlier: a run that
// follows another at once begins within the clock tick in which the other one
// wrote. Field 22 of /proc/self/stat is in ticks since boot, rounded down
// (proc(5)).
uint64_t processBegan() {
  const uint64_t seen =
      firstSeen.pid == ::getpid() ? firstSeen.at : wallClockMicroseconds();
  std::ifstream file("/proc/self/stat");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const size_t afterName = text.rfind(')');
  if (afterName == std::string::npos) {
    return seen;
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
  const uint64_t endOfTick =
      (ticks + 1) * 1000000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  return std::min(seen, wallClockMicroseconds() -
                            (sinceBoot - std::min(endOfTick, sinceBoot)));
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

bool isRefusalOfThisRun(uint64_t writtenAt) {
  return !hasFailed && isOfThisRun(writtenAt);
}

bool isFreshRefusal(uint64_t writtenAt) {
  constexpr uint64_t kFresh = 10'000'000;  // microseconds
  return !hasFailed && writtenAt > lastEnd &&
         writtenAt + kFresh > wallClockMicroseconds();
}

void endOfRun() {
  lastEnd = wallClockMicroseconds();
  hasFailed = false;
}

void failedRun() { hasFailed = true; }

}  // namespace rendezvous
GLOO_NAMESPACE_END
