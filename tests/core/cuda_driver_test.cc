// How the CUDA driver is found once the process has loaded it. In children: it
// stays loaded.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "gloo/internal/cuda.h"
#include "gloo/internal/loader.h"
#include "tests/support/forked_child.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using internal::cudaDriver;

bool isLoaded(const char* path) {
  return ::dlopen(path, RTLD_NOW | RTLD_NOLOAD) != nullptr;
}

TEST(CudaDriverTest, IsFoundWhenItIsLoadedLater) {
  EXPECT_TRUE(holdsInChild([] {
    if (cudaDriver() != nullptr || cudaDriver() != nullptr) {
      return false;
    }
    void* const library = ::dlopen(GLOO_TEST_DRIVER, RTLD_NOW);
    const auto* const driver = cudaDriver();
    return library != nullptr && driver != nullptr && driver == cudaDriver() &&
           reinterpret_cast<void*>(driver->streamCreate) ==
               ::dlsym(library, "cuStreamCreate") &&
           ::dlclose(library) == 0 && isLoaded(GLOO_TEST_DRIVER);
  }));
}

TEST(CudaDriverTest, IsTheSameForThreadsThatLookAtOnce) {
  EXPECT_TRUE(holdsInChild([] {
    std::vector<const internal::CudaDriver*> found(4);
    void* const library = ::dlopen(GLOO_TEST_DRIVER, RTLD_NOW);
    std::vector<std::thread> threads;
    for (auto& driver : found) {
      threads.emplace_back([&driver] { driver = cudaDriver(); });
    }
    for (auto& thread : threads) {
      thread.join();
    }
    return library != nullptr && found[0] != nullptr &&
           std::count(found.begin(), found.end(), found[0]) == 4;
  }));
}

TEST(CudaDriverTest, IsNotKeptWhereItLacksAFunction) {
  EXPECT_TRUE(holdsInChild([] {
    void* const stub = ::dlopen(GLOO_TEST_STUB, RTLD_NOW);
    const bool isNone = cudaDriver() == nullptr && cudaDriver() == nullptr;
    return stub != nullptr && isNone && ::dlclose(stub) == 0 &&
           !isLoaded(GLOO_TEST_STUB);
  }));
}

// As a constructor does that runs under the loader's lock.
TEST(LoaderLockTest, IsWaitedForButNotForEver) {
  EXPECT_TRUE(holdsInChild([] {
    const internal::LoaderLock lock;
    return holdsInChild([] { return cudaDriver() == nullptr; });
  }));
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
