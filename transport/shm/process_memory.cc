#include "transport/shm/process_memory.h"

#include <sys/uio.h>

#include <cerrno>

#include "transport/base/process.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

ProcessMemory::ProcessMemory(pid_t pid, uint64_t address, const Secret& secret)
    : pid_(pid) {
  if (pid <= 0) {
    trouble_ = "its process is in another PID namespace";
    return;
  }
  process_ = base::openProcess(pid);
  if (!process_) {
    const int error = errno;
    trouble_ =
        "pidfd_open: " + base::errnoText(error) + base::errnoRemedy(error);
    return;
  }
  Secret there{};
  permitted_ = true;
  const int error = read(there.data(), address, there.size());
  if (error != 0 || there != secret) {
    if (permitted_) {
      trouble_ = "the memory there is not the peer's";
    }
    permitted_ = false;
    process_.reset();
  }
}

void ProcessMemory::forbid(int error) {
  permitted_ = false;
  switch (error) {
    case EPERM:
      trouble_ = "the kernel forbids it (ptrace_scope, capabilities)";
      break;
    case ENOSYS:
      trouble_ =
          "the kernel, or a filter of system calls, has no process_vm_readv";
      break;
    case ESRCH:
      trouble_ = "its main thread has ended";
      break;
    default:
      trouble_ = "process_vm_readv: " + base::errnoText(error);
  }
}

int ProcessMemory::read(char* local, uint64_t remote, size_t bytes) {
  while (bytes > 0) {
    const iovec to{local, bytes};
    const iovec from{reinterpret_cast<void*>(remote), bytes};  // NOLINT
    const ssize_t n = ::process_vm_readv(pid_, &to, 1, &from, 1, 0);
    if (n <= 0) {
      const int error = n == 0 ? EFAULT : errno;
      if (error != EFAULT && !base::hasEnded(process_)) {
        forbid(error);
      }
      return error;
    }
    local += n;
    remote += static_cast<uint64_t>(n);
    bytes -= static_cast<size_t>(n);
  }
  return base::hasEnded(process_) ? ESRCH : 0;
}

}  // namespace transport::shm
GLOO_NAMESPACE_END
