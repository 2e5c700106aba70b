// A rank that runs out of descriptors while it connects says so, and goes on.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "gloo/common/error.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/file_store.h"
#include "tests/multiprocess/job.h"
#include "tests/support/descriptors.h"
#include "tests/support/process_group.h"
#include "tests/support/sanitized.h"
#include "tests/support/spawn.h"
#include "tests/support/transports.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

// (Without a descriptor left, a sanitizer cannot look at memory.)
#ifndef GLOO_TEST_SANITIZED

// Whoever runs out says what there is too little of; the other one may know no
// more than that nobody comes.
void expectLimit(const Child& child, const std::string& text) {
  const bool told = text.find("Too many open files") != std::string::npos ||
                    text.find("ulimit -n") != std::string::npos;
  EXPECT_TRUE(told || child.rank != 0) << text;
}

TEST(LimitsTest, WhicheverDescriptorIsTheOneTooMany) {
  int failed = 0;
  int connected = 0;
  for (int spare = 0; spare < 12 && !HasFailure(); spare++) {
    SCOPED_TRACE(spare);
    const ScratchDirectory directory;
    ProcessGroup group(2, [&](Child& child) {
      auto device = chosenTransport(true).make();
      const auto store =
          std::make_shared<rendezvous::FileStore>(directory.path());
      const auto context = std::make_shared<rendezvous::Context>(child.rank, 2);
      context->setTimeout(std::chrono::seconds(5) * patience());
      if (child.rank == 0) {
        leaveDescriptors(spare);
      }
      try {
        context->connectFullMesh(store, device);
        exchangeRing(*context, 1, 100);
        child.say("connected");
      } catch (const IoException& e) {
        expectLimit(child, e.what());
        child.say("failed");
      }
    });
    const std::string said = group.hear(0, std::chrono::seconds(30));
    failed += said == "failed" ? 1 : 0;
    connected += said == "connected" ? 1 : 0;
    group.joinAll(std::chrono::seconds(30));
  }
  EXPECT_GT(failed, 0);
  EXPECT_GT(connected, 0);
}

#endif

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
