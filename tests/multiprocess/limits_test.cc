// A rank that runs out of descriptors while it connects says so, and goes on.
#include <gtest/gtest.h>

#include <memory>

#include "gloo/common/error.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/file_store.h"
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

TEST(LimitsTest, WhicheverDescriptorIsTheOneTooMany) {
  for (int spare = 0; spare < 12; spare++) {
    SCOPED_TRACE(spare);
    const ScratchDirectory directory;
    ProcessGroup group(2, [&](Child& child) {
      auto device = chosenTransport(true).make();
      const auto store =
          std::make_shared<rendezvous::FileStore>(directory.path());
      rendezvous::Context context(child.rank, 2);
      context.setTimeout(std::chrono::seconds(1));
      if (child.rank == 0) {
        leaveDescriptors(spare);
      }
      try {
        context.connectFullMesh(store, device);
      } catch (const IoException&) {
      }
    });
    group.joinAll(std::chrono::seconds(30));
  }
}

#endif

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
