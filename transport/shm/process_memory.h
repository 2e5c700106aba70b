// Reads the memory of another process: one copy instead of two, where the
// kernel permits it (process_vm_readv(2)).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "gloo/config.h"
#include "transport/base/link.h"
#include "transport/base/socket.h"
#include "transport/shm/segment.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

// Of a process, whatever it permits. Thread-safe.
class ProcessReader final : public base::PeerMemory {
 public:
  ProcessReader(pid_t pid, base::UniqueFd process)
      : pid_(pid), process_(std::move(process)) {}

  // 0, or errno: see ProcessMemory::read().
  int copy(char* local, uint64_t remote, size_t bytes) const;
  [[nodiscard]] bool read(char* local, uint64_t remote,
                          size_t bytes) const override {
    return copy(local, remote, bytes) == 0;
  }
  // Whether the process itself may read all of these bytes, as far as /proc
  // tells.
  bool maps(uint64_t remote, size_t bytes) const;
  int descriptor() const { return process_.get(); }
  bool hasEnded() const;

 private:
  const pid_t pid_;
  const base::UniqueFd process_;  // pidfd_open(2)
};

// One thread.
class ProcessMemory {
 public:
  ProcessMemory() = default;
  // Of the process behind a socket. Permitted only if `secret` can be read at
  // `address` there: that is the process that told us so, and it may be read.
  ProcessMemory(pid_t pid, uint64_t address, const Secret& secret);

  bool permitted() const { return permitted_; }
  // At least at first: what a process may do changes (prctl(2), seccomp(2)).
  bool wasPermitted() const { return reader_ != nullptr; }
  // Of the process (pidfd_open(2)); -1 unless it was permitted.
  int descriptor() const {
    return reader_ != nullptr ? reader_->descriptor() : -1;
  }
  // For others to read it; null unless it was permitted.
  std::shared_ptr<const ProcessReader> reader() const { return reader_; }
  // Why it is not.
  const std::string& trouble() const { return trouble_; }

  // Copies `bytes` from there to `local`: 0, or errno. When it returns 0, the
  // bytes are that process's, and not those of a later one with its number.
  // Unless the memory is not there, or the process has ended, an error is the
  // end of the permission.
  int read(char* local, uint64_t remote, size_t bytes);

 private:
  void forbid(int error);

  bool permitted_ = false;
  std::shared_ptr<const ProcessReader> reader_;
  std::string trouble_ = "it was not tried";
};

}  // namespace transport::shm
GLOO_NAMESPACE_END
