#include "transport/base/bell.h"

#include <linux/futex.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "gloo/common/error.h"
#include "gloo/common/logging.h"
#include "gloo/internal/fork.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

namespace {

timespec toTimespec(std::chrono::nanoseconds time) {
  time = std::max(time, std::chrono::nanoseconds::zero());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {static_cast<time_t>(seconds.count()),
          static_cast<long>((time - seconds).count())};
}

// Null for a deadline that never comes.
const timespec* timeLeft(Deadline deadline, timespec* storage) {
  if (deadline.never()) {
    return nullptr;
  }
  const auto now = Deadline::Clock::now();  // (time_point::min() may be set)
  *storage = toTimespec(std::max(deadline.at(), now) - now);
  return storage;
}

}  // namespace

void futexWait(std::atomic<uint32_t>& word, Deadline deadline) {
  while (word.load(std::memory_order_acquire) == 0 && !deadline.expired()) {
    timespec storage;
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0,
            timeLeft(deadline, &storage), nullptr, 0);
  }
}

// Who has waited takes the lock as wanted, since others may wait still.
void FutexLock::lockSlowly() {
  while (state_.exchange(kWanted, std::memory_order_acquire) != kFree) {
    syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, kWanted, nullptr, nullptr,
            0);
  }
}

void FutexLock::wakeOne() {
  syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

namespace {

// What headers older than Linux 5.16 lack.
#ifdef SYS_futex_waitv
constexpr long kFutexWaitv = SYS_futex_waitv;
#else
constexpr long kFutexWaitv = 449;
#endif
constexpr uint32_t kFutex32 = 2;

std::atomic<bool> waitvFails{false};

// 0, or errno.
int futexWaitv(const void* words, size_t count, const timespec* until) {
  const long rv = syscall(kFutexWaitv, words, count, 0, until, CLOCK_MONOTONIC);
  return rv >= 0 ? 0 : errno;
}

}  // namespace

// Asked with a word that has another value: it answers at once.
bool FutexWords::supported() {
  const bool atFirst = internal::madeOnce([] {
    const std::atomic<uint32_t> zero{0};
    FutexWords one;
    one.add(zero, 1, true);
    const int error = futexWaitv(one.words_.data(), 1, nullptr);
    if (error != EAGAIN) {
      GLOO_DEBUG("waits for shared memory sleep in epoll, as futex_waitv says ",
                 std::strerror(error));
    }
    return error == EAGAIN;
  });
  return atFirst && !waitvFails.load(std::memory_order_relaxed);
}

void FutexWords::add(const std::atomic<uint32_t>& word, uint32_t value,
                     bool shared) {
  const uint32_t scope = shared ? 0 : FUTEX_PRIVATE_FLAG;
  words_[count_++] = {value, reinterpret_cast<uint64_t>(&word),
                      kFutex32 | scope, 0};
}

// Deadline::Clock is CLOCK_MONOTONIC.
bool FutexWords::wait(Deadline deadline) const {
  const timespec until = toTimespec(deadline.at().time_since_epoch());
  const int error =
      futexWaitv(words_.data(), count_, deadline.never() ? nullptr : &until);
  switch (error) {
    case 0:
    case EAGAIN:  // has another value already
    case EINTR:
    case EFAULT:  // is gone
      return true;
    case ETIMEDOUT:
      return false;
    default:  // as a filter of system calls that was set up since
      waitvFails.store(true, std::memory_order_relaxed);
      return false;
  }
}

namespace {

// As the headers of Linux 4.16 have them: 0, or errno.
constexpr int kRegisterGlobalExpedited = 1 << 2;
constexpr int kGlobalExpedited = 1 << 1;

int membarrier(int command) {
#ifdef SYS_membarrier
  return syscall(SYS_membarrier, command, 0, 0) == 0 ? 0 : errno;
#else
  (void)command;
  return ENOSYS;
#endif
}

}  // namespace

// Each time anew: a child may be forked while its parent asks.
bool SleepersBarrier::supported() {
  const int error = membarrier(kRegisterGlobalExpedited);
  if (error != 0) {
    GLOO_DEBUG(
        "collectives in shared memory publish by sequentially consistent "
        "stores, as membarrier says ",
        std::strerror(error));
  }
  return error == 0;
}

bool SleepersBarrier::make() { return membarrier(kGlobalExpedited) == 0; }

void wakeShared(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

UniqueFd makeBell() {
  UniqueFd bell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!bell) {
    GLOO_THROW_IO_EXCEPTION("eventfd: ", std::strerror(errno),
                            " (raise the limit of open files, ulimit -n)");
  }
  return bell;
}

void ring(const UniqueFd& bell) {
  const uint64_t one = 1;
  [[maybe_unused]] const auto rv = write(bell.get(), &one, sizeof(one));
}

void silence(const UniqueFd& bell) {
  uint64_t count;
  [[maybe_unused]] const auto rv = read(bell.get(), &count, sizeof(count));
}

void waitReadable(int a, int b, Deadline deadline) {
  pollfd fds[2] = {{a, POLLIN, 0}, {b, POLLIN, 0}};
  timespec storage;
  ppoll(fds, 2, timeLeft(deadline, &storage), nullptr);
}

bool waitReadable(int fd, std::chrono::milliseconds limit) {
  pollfd what{fd, POLLIN, 0};
  return poll(&what, 1, static_cast<int>(limit.count())) > 0;
}

void futexWake(std::atomic<uint32_t>& word) {
  word.store(1, std::memory_order_release);
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace transport::base
GLOO_NAMESPACE_END
