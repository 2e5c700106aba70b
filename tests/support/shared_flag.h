// A flag of this process and of those that it forks.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <new>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace test {

class SharedFlag {
 public:
  SharedFlag() = default;
  ~SharedFlag() { ::munmap(memory_, sizeof(std::atomic<bool>)); }
  SharedFlag(const SharedFlag&) = delete;
  SharedFlag& operator=(const SharedFlag&) = delete;
  void set() { flag_ = true; }
  bool isSet() const { return flag_; }

 private:
  void* memory_ =
      ::mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  std::atomic<bool>& flag_ = *new (memory_) std::atomic<bool>(false);
};

}  // namespace test
GLOO_NAMESPACE_END
