// How much memory this process may still take before the kernel ends it: of the
// machine, and of the memory cgroups that it is in (containers, jobs).
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

// Bytes, with what the kernel would give back or swap out first. What cannot be
// found out is no limit: UINT64_MAX. Reads files below `root`: a test has its
// own.
uint64_t memoryLeft(const std::string& root = {});

// Refuses to take more than that. While there is plenty of it, the files are
// not read for each piece. Thread-safe; of use in a forked child, too.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::string root = {}) : root_(std::move(root)) {}
  // Of this process.
  static MemoryBudget& instance();

  // `bytes` are about to be taken. Throws IoException, with the remedy.
  void take(uint64_t bytes);
  // `rest` of them are still to come: what is left may have become less since,
  // as others take of it at the same time. Throws as take() does.
  void confirm(uint64_t rest);

 private:
  const std::string root_;
  // relaxed: threads that look at once may read the files twice
  std::atomic<uint64_t> left_{0};
  std::atomic<int64_t> readAt_{0};  // milliseconds
};

}  // namespace transport::shm
GLOO_NAMESPACE_END
