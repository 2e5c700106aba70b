// The transports that tests run on. A new one needs a line in transports.cc,
// and nothing else.
#pragma once

#include <string>
#include <vector>

#include "gloo/config.h"
#include "tests/support/spawn.h"

GLOO_NAMESPACE_BEGIN
namespace test {

struct TestTransport {
  std::string name;  // "tcp", "tcp_lazy"
  DeviceMaker make;
  // Why it cannot run on this machine; empty: it can. An explicit probe of the
  // machine; catches nothing.
  std::function<std::string()> missing;
  // Whether ranks can be processes.
  bool processes = true;
};

const std::vector<TestTransport>& transports();

// The one that GLOO_TEST_TRANSPORT names, by default "tcp" ("tcp_lazy" if
// `lazy`): for tests that run on one transport at a time. Throws for an unknown
// name.
const TestTransport& chosenTransport(bool lazy = false);

// Whether GLOO_REQUIRE (a list: "tcp,shm,namespaces") names this transport, or
// what else a machine may lack: then it may not be skipped.
bool isRequired(const std::string& name);

}  // namespace test
GLOO_NAMESPACE_END

// Skips the test where the machine lacks `name`, `why` says how (empty: it does
// not), and fails it when GLOO_REQUIRE says that the machine has it.
#define SKIP_IF_MISSING(name, why)                           \
  if (const std::string missing = (why); !missing.empty()) { \
    if (::gloo::test::isRequired(name)) {                    \
      FAIL() << (name) << " is required, but " << missing;   \
    }                                                        \
    GTEST_SKIP() << missing;                                 \
  }                                                          \
  static_assert(true, "")

#define SKIP_UNLESS_AVAILABLE(transport) \
  SKIP_IF_MISSING((transport).name, (transport).missing())
