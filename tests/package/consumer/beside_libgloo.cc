// Debian's libgloo, on which its PyTorch is built, is loaded first and for
// all to see; then this program's own collectives run. Names that both define
// would now be taken from the other library.
#include <dlfcn.h>

#include <cstdio>
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
  CHECK(data.back() == static_cast<float>(size * (size - 1) / 2));
  gloo::BroadcastOptions from(context);
  from.setRoot(0);
  from.setOutput(data.data(), data.size());
  gloo::broadcast(from);
  gloo::BarrierOptions barrier(context);
  gloo::barrier(barrier);
}

}  // namespace

int main() {
  if (dlopen("libgloo.so.0", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    std::fprintf(stderr, "libgloo.so.0: %s\n", dlerror());
    return 1;
  }
  return runProcesses(3, job) ? 0 : 1;
}
