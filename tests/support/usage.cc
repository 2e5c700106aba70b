#include "tests/support/usage.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>

#include "tests/support/sanitized.h"

namespace {
std::atomic<uint64_t> count{0};
}  // namespace

#ifdef GLOO_TEST_SANITIZED

extern "C" int __sanitizer_install_malloc_and_free_hooks(
    void (*malloc_hook)(const volatile void*, size_t),
    void (*free_hook)(const volatile void*));

namespace {
// relaxed: only a number
void onMalloc(const volatile void*, size_t) {
  count.fetch_add(1, std::memory_order_relaxed);
}
void onFree(const volatile void*) {}
[[maybe_unused]] const int installed =
    __sanitizer_install_malloc_and_free_hooks(&onMalloc, &onFree);
}  // namespace

#else

namespace {
// relaxed: only for threads that know of it
std::atomic<size_t> refused{SIZE_MAX};  // and what is longer
}  // namespace

// glibc's own names of what is interposed here.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t n, size_t bytes);
void* __libc_realloc(void* ptr, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
  count.fetch_add(1, std::memory_order_relaxed);
  if (bytes >= refused.load(std::memory_order_relaxed)) {
    errno = ENOMEM;
    return nullptr;
  }
  return __libc_malloc(bytes);
}
void* calloc(size_t n, size_t bytes) {
  count.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(n, bytes);
}
void* realloc(void* ptr, size_t bytes) {
  count.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(ptr, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  count.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return memalign(alignment, bytes);
}
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  *out = memalign(alignment, bytes);
  return *out == nullptr ? ENOMEM : 0;
}
}  // extern "C"

#endif

GLOO_NAMESPACE_BEGIN
namespace test {

#ifndef GLOO_TEST_SANITIZED
NoMemory::NoMemory(size_t bytes) {
  refused.store(bytes, std::memory_order_relaxed);
}
NoMemory::~NoMemory() { refused.store(SIZE_MAX, std::memory_order_relaxed); }
#endif

uint64_t allocations() { return count.load(std::memory_order_relaxed); }

std::chrono::nanoseconds cpuTime() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

double coreShareOf(const std::function<void()>& work) {
  using Seconds = std::chrono::duration<double>;
  const auto since = std::chrono::steady_clock::now();
  const auto before = cpuTime();
  work();
  const Seconds used = cpuTime() - before;
  return used / Seconds(std::chrono::steady_clock::now() - since);
}

}  // namespace test
GLOO_NAMESPACE_END
