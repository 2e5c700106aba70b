// The transports that the contract suite runs on here: fake links of each
// shape, all ranks in one process. Larger and smaller limits are two more.
#include "tests/support/fake_link.h"
#include "tests/support/transports.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

std::string nothing() { return std::string(); }

TestTransport fake(FakeShape shape, bool tiny) {
  FakeOptions options;
  options.shape = shape;
  if (tiny) {  // nearly everything is announced
    options.eagerBytes = 64;
    options.creditBytes = 256;
    options.maxFrameBytes = 100000;
  }
  return {name(shape) + (tiny ? "_tiny" : ""), fakeDevices(options), &nothing,
          false};
}

}  // namespace

const std::vector<TestTransport>& transports() {
  static const std::vector<TestTransport> all = {
      fake(FakeShape::kStream, false), fake(FakeShape::kStream, true),
      fake(FakeShape::kPush, false),   fake(FakeShape::kPush, true),
      fake(FakeShape::kPull, false),   fake(FakeShape::kPull, true),
      fake(FakeShape::kMixed, false),  fake(FakeShape::kMixed, true)};
  return all;
}

bool isRequired(const std::string&) { return true; }

}  // namespace test
GLOO_NAMESPACE_END
