// Reads the memory of another process: one copy instead of two, where the
// kernel permits it (process_vm_readv(2)).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "gloo/config.h"
#include "transport/base/socket.h"
#include "transport/shm/segment.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

// One thread.
class ProcessMemory {
 public:
  ProcessMemory() = default;
  // Of the process behind a socket. Permitted only if `secret` can be read at
  // `address` there: that is the process that told us so, and it may be read.
  ProcessMemory(pid_t pid, uint64_t address, const Secret& secret);

  bool permitted() const { return permitted_; }
  // At least at first: what a process may do changes (prctl(2), seccomp(2)).
  bool wasPermitted() const { return static_cast<bool>(process_); }
  // Of the process (pidfd_open(2)); none unless it was permitted.
  int descriptor() const { return process_.get(); }
  // Why it is not.
  const std::string& trouble() const { return trouble_; }

  // Copies `bytes` from there to `local`: 0, or errno. When it returns 0, the
  // bytes are that process's, and not those of a later one with its number.
  // Unless the memory is not there, or the process has ended, an error is the
  // end of the permission.
  int read(char* local, uint64_t remote, size_t bytes);

 private:
  void forbid(int error);

  pid_t pid_ = 0;
  bool permitted_ = false;
  base::UniqueFd process_;
  std::string trouble_ = "it was not tried";
};

}  // namespace transport::shm
GLOO_NAMESPACE_END
