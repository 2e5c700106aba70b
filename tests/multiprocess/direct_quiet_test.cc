// A rank that waits in a lane, in memory that all ranks have mapped, sleeps.
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/math.h"
#include "gloo/transport/auto/device.h"
#include "gloo/transport/shm/device.h"
#include "tests/multiprocess/job.h"
#include "tests/support/usage.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

// The others of a collective, while rank 0 takes its time.
void waitLong(bool isAuto, int size) {
  Job::Options options;
  options.size = size;
  options.device = [isAuto](int) {
    return isAuto ? transport::CreateDevice() : transport::shm::CreateDevice();
  };
  Job job(options, [](Child& child, const std::shared_ptr<Context>& context) {
    std::vector<float> values(1000, 1);
    AllreduceOptions opts(context);
    opts.setOutput(values.data(), values.size());
    void (*add)(void*, const void*, const void*, size_t) = &sum<float>;
    opts.setReduceFunction(add);
    allreduce(opts);
    child.say("there");
    child.hear();
    // With the looks before it sleeps, and the operation itself.
    const double share = coreShareOf([&] { allreduce(opts); });
    if (child.rank != 0) {
      EXPECT_LT(share, 0.02 * slowness());
    }
    barrier(BarrierOptions(context));
  });
  job.go();
  job.group().expectAll("there");
  for (int rank = 1; rank < size; rank++) {
    job.group().tell(rank, "go on");
  }
  // Is measured, with the looks before it sleeps.
  ::usleep(150000 * static_cast<unsigned>(slowness()));
  job.group().tell(0, "go on");
  job.group().joinAll();
}

TEST(DirectQuietTest, ALongWaitInALaneUsesLittleCpu) {
  waitLong(false, 2);
  waitLong(true, 4);
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
