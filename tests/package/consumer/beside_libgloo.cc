// Debian's libgloo, on which its PyTorch is built, in one process with ours.
// This file is compiled for both: as a program that uses ours, and as a module
// that uses Debian's. The program runs their collectives in turn. Names that
// both libraries define would be taken from one of them for both: from ours,
// or, where Debian's is preloaded, from that.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/broadcast.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/transport/tcp/device.h"
#include "support/check.h"
#include "support/ranks.h"

namespace {

void job(int rank, int size, const std::string& directory) {
  std::filesystem::create_directories(directory);
  auto device = gloo::transport::tcp::CreateDevice("localhost");
  gloo::rendezvous::FileStore store(directory);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->connectFullMesh(store, device);
  std::vector<float> data(1000, static_cast<float>(rank));
  gloo::AllreduceOptions opts(context);
  opts.setOutput(data.data(), data.size());
  void (*sum)(void*, const void*, const void*, size_t) = &gloo::sum<float>;
  opts.setReduceFunction(sum);
  gloo::allreduce(opts);
  const auto total = static_cast<float>(size * (size - 1) / 2);
  CHECK(data == std::vector<float>(1000, total));
  data.assign(1000, static_cast<float>(rank + 7));
  gloo::BroadcastOptions from(context);
  from.setRoot(0);
  from.setOutput(data.data(), data.size());
  gloo::broadcast(from);
  CHECK(data == std::vector<float>(1000, 7));
  gloo::BarrierOptions barrier(context);
  gloo::barrier(barrier);
  leaveTogether(store, rank, size);
}

}  // namespace

#if EXPECT_OURS

using Job = bool (*)(int rank, int size, const char* directory);

int main() {
  const char* const name = "libgloo.so.0";
  const bool isFirst = dlopen(name, RTLD_NOW | RTLD_NOLOAD) != nullptr;
  if (isFirst != (std::getenv("LD_PRELOAD") != nullptr)) {
    std::fprintf(stderr, "%s is preloaded: %d\n", name, isFirst);
    return 1;
  }
  void* module = nullptr;
  if (dlopen(name, RTLD_NOW | RTLD_GLOBAL) == nullptr ||
      (module = dlopen(THEIR_JOB, RTLD_NOW)) == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  const auto theirJob = reinterpret_cast<Job>(dlsym(module, "theirJob"));
  return theirJob != nullptr &&
                 runProcesses(
                     3,
                     [=](int rank, int size, const std::string& directory) {
                       job(rank, size, directory + "/ours");
                       const std::string theirs = directory + "/theirs";
                       CHECK(theirJob(rank, size, theirs.c_str()));
                       job(rank, size, directory + "/again");
                     })
             ? 0
             : 1;
}

#else

// False, and said, if it throws.
extern "C" bool theirJob(int rank, int size, const char* directory) {
  return runBody(job, rank, size, directory);
}

#endif
