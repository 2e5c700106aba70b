// libFuzzer's entry: the one target that this program is linked with.
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto target = gloo::test::fuzzTargets().at(0);
  // A copy of its own, so that reading past the end is seen.
  const std::vector<char> bytes(data, data + size);
  target.run(bytes.data(), bytes.size());
  return 0;
}
