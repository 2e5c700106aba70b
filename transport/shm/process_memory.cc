#include "transport/shm/process_memory.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

ProcessMemory::ProcessMemory(pid_t pid, uint64_t address, const Secret& secret)
    : pid_(pid) {
  if (pid <= 0) {
    trouble_ = "its process is in another PID namespace";
    return;
  }
  process_ =
      base::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process_) {
    trouble_ = "pidfd_open fails";
    return;
  }
  Secret there{};
  const int error = read(there.data(), address, there.size());
  if (error != 0 || there != secret) {
    process_.reset();
    trouble_ = error == EPERM
                   ? "the kernel forbids it (ptrace_scope, capabilities)"
                   : "the memory there is not the peer's";
  }
}

int ProcessMemory::read(char* local, uint64_t remote, size_t bytes) const {
  while (bytes > 0) {
    const iovec to{local, bytes};
    const iovec from{reinterpret_cast<void*>(remote), bytes};  // NOLINT
    const ssize_t n = ::process_vm_readv(pid_, &to, 1, &from, 1, 0);
    if (n <= 0) {
      return n == 0 ? EFAULT : errno;
    }
    local += n;
    remote += static_cast<uint64_t>(n);
    bytes -= static_cast<size_t>(n);
  }
  // poll(2) looks, and yet ends with EINTR where a signal is pending.
  pollfd ended{process_.get(), POLLIN, 0};
  int n = 0;
  do {
    n = ::poll(&ended, 1, 0);
  } while (n < 0 && errno == EINTR);
  return n == 0 ? 0 : ESRCH;
}

}  // namespace transport::shm
GLOO_NAMESPACE_END
