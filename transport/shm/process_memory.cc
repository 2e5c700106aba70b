#include "transport/shm/process_memory.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

#include "gloo/common/string.h"
#include "transport/base/process.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

int ProcessReader::copy(char* local, uint64_t remote, size_t bytes) const {
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
  return hasEnded() ? ESRCH : 0;
}

namespace {

// Whether all of it is mapped there with that right, 'r' or 'w' (proc(5)).
bool hasMapped(const std::string& process, uint64_t at, size_t bytes,
               char right) {
  std::ifstream maps("/proc/" + process + "/maps");
  for (std::string line; bytes > 0 && std::getline(maps, line);) {
    uint64_t begin = 0;
    uint64_t end = 0;
    char rights[3] = {};
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %2s", &begin, &end,
                    rights) == 3 &&
        (rights[0] == right || rights[1] == right) && begin <= at && at < end) {
      bytes -= std::min<uint64_t>(bytes, end - at);
      at = end;
    }
  }
  return bytes == 0;
}

}  // namespace

bool ProcessReader::maps(uint64_t remote, size_t bytes) const {
  return hasMapped(MakeString(pid_), remote, bytes, 'r');
}

bool ProcessReader::hasEnded() const { return base::hasEnded(process_); }

ProcessMemory::ProcessMemory(pid_t pid, uint64_t address,
                             const Secret& secret) {
  if (pid <= 0) {
    trouble_ = "its process is in another PID namespace";
    return;
  }
  base::UniqueFd process = base::openProcess(pid);
  if (!process) {
    const int error = errno;
    trouble_ =
        "pidfd_open: " + base::errnoText(error) + base::errnoRemedy(error);
    return;
  }
  reader_ = std::make_shared<const ProcessReader>(pid, std::move(process));
  Secret there{};
  permitted_ = true;
  const int error = read(there.data(), address, there.size());
  if (error != 0 || there != secret) {
    if (permitted_) {
      trouble_ = "the memory there is not the peer's";
    }
    permitted_ = false;
    reader_.reset();
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
    case EFAULT:
      trouble_ = "it sends what the kernel does not copy, as a device's memory";
      break;
    default:
      trouble_ = "process_vm_readv: " + base::errnoText(error);
  }
}

int ProcessMemory::read(char* local, uint64_t remote, size_t bytes) {
  const int error = reader_->copy(local, remote, bytes);
  // A bad address, which may be ours, or memory that the kernel does not copy?
  const bool isBad =
      error == EFAULT &&
      (!reader_->maps(remote, bytes) ||
       !hasMapped("self", reinterpret_cast<uintptr_t>(local), bytes, 'w'));
  if (error != 0 && !isBad && !reader_->hasEnded()) {
    forbid(error);
  }
  return error;
}

}  // namespace transport::shm
GLOO_NAMESPACE_END
