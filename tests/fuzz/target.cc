#include "tests/fuzz/target.h"

#include <cstdio>
#include <cstdlib>

GLOO_NAMESPACE_BEGIN
namespace test {

std::vector<FuzzTarget>& fuzzTargets() {
  static std::vector<FuzzTarget> targets;
  return targets;
}

void require(bool promise, const char* what) {
  if (!promise) {
    std::fprintf(stderr, "broken promise: %s\n", what);
    std::abort();
  }
}

}  // namespace test
GLOO_NAMESPACE_END
