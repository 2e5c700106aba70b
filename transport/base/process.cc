#include "transport/base/process.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

GLOO_NAMESPACE_BEGIN
namespace transport::base {

UniqueFd openProcess(int pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool hasEnded(const UniqueFd& process) {
  // poll(2) looks, and yet ends with EINTR where a signal is pending.
  pollfd ended{process.get(), POLLIN, 0};
  int n = 0;
  do {
    n = ::poll(&ended, 1, 0);
  } while (n < 0 && errno == EINTR);
  return n > 0;
}

bool hasEnded(int pid) {
  const UniqueFd process = openProcess(pid);
  return process ? hasEnded(process) : errno == ESRCH;
}

}  // namespace transport::base
GLOO_NAMESPACE_END
