// Tools that measure or test the library itself: aligned vectors of any type,
// 16-bit numbers in messages, a base where no algorithm has one, and devices
// that this host may not have.
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "gloo/algorithm.h"
#include "gloo/common/aligned_allocator.h"
#include "gloo/common/logging.h"
#include "gloo/config.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/transport/tcp/device.h"
#include "gloo/types.h"
#if HAVE_ALLREDUCE_HALVING_DOUBLING
#include "gloo/allreduce_halving_doubling.h"
#endif
#if EXPECT_OURS && HAVE_ALLREDUCE_BCUBE
#include "gloo/allreduce_bcube.h"
#endif
#if EXPECT_OURS && GLOO_HAVE_TRANSPORT_IBVERBS
#include "gloo/transport/ibverbs/device.h"
#endif
#include "support/check.h"
#include "support/ranks.h"

namespace {

// The older library's macros want to be inside its namespace.
using gloo::EnforceNotMet;
using gloo::MakeString;

constexpr int kElements = 257;

template <typename T>
using Aligned =
    std::vector<T, gloo::aligned_allocator<T, gloo::kBufferAlignment>>;

// What `Reduction` makes of (rank + 1, rank + 1, ...).
template <typename T, template <typename> class Reduction>
void measure(const std::shared_ptr<gloo::Context>& context) {
  Aligned<T> data(kElements);
  for (auto& each : data) {
    each = context->rank + 1;
  }
  const std::vector<T*> inputs = {data.data()};
  Reduction<T>(context, inputs, kElements).run();
  T expected;
  expected = context->size * (context->size + 1) / 2;
  for (int i = 0; i < kElements; i++) {
    GLOO_ENFORCE_EQ(data[i], expected, "element ", i, " is ", data[i], ", not ",
                    expected);
  }
}

void measureAll(int rank, int size, const std::string& directory) {
  gloo::rendezvous::FileStore store(directory);
  auto device = gloo::transport::tcp::CreateDevice("localhost");
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size, 0);
  context->connectFullMesh(store, device);
#if HAVE_ALLREDUCE_HALVING_DOUBLING
  measure<float, gloo::AllreduceHalvingDoubling>(context);
  measure<gloo::float16, gloo::AllreduceHalvingDoubling>(context);
#endif
#if EXPECT_OURS && HAVE_ALLREDUCE_BCUBE
  measure<double, gloo::AllreduceBcube>(context);
#endif
  leaveTogether(store, rank, size);
}

void printHalf() {
  gloo::float16 half;
  half = 3;
  std::ostringstream out;
  out << half;
  CHECK(out.str() == "3");
}

void lookForRdma() {
#if EXPECT_OURS && GLOO_HAVE_TRANSPORT_IBVERBS
  if (!gloo::transport::ibverbs::getDeviceNames().empty()) {
    return;
  }
  namespace ibverbs = gloo::transport::ibverbs;
  ibverbs::attr attr;
  attr.port = 1;
  for (const std::function<void()>& create :
       {std::function<void()>([&] { ibverbs::CreateDevice(attr); }),
        std::function<void()>([] { ibverbs::CreateDevice(); }),
        std::function<void()>([] { ibverbs::CreateLazyDevice(); })}) {
    try {
      create();
      CHECK(!"there was a device");
    } catch (const gloo::InvalidOperationException& error) {
      CHECK(std::string(error.what()).find("No RDMA device") !=
            std::string::npos);
    }
  }
#endif
}

}  // namespace

int main() {
  try {
    printHalf();
    lookForRdma();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return runThreads(3, measureAll) && runProcesses(4, measureAll) ? 0 : 1;
}
