// The transports that the contract suite runs on here: ibverbs over RDMA
// devices in memory, all ranks in one process.
#include <gtest/gtest.h>

#include "tests/support/transports.h"
#include "tests/transport/ibverbs/fake_devices.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

std::string nothing() { return std::string(); }

TestTransport over(const std::string& name, const FakeDevices& devices) {
  return {name, fakeVerbsDevices(devices), &nothing, false};
}

FakeDevices lazy() {
  FakeDevices devices = asynchronousDevices(2);
  devices.lazy = true;
  return devices;
}

class NoMistakes : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo&) override {
    EXPECT_EQ(mistakesOfFakeVerbs(), "");
  }
};

}  // namespace

const std::vector<TestTransport>& transports() {
  static const std::vector<TestTransport> all = {
      over("verbs", plainDevices()),
      over("verbs_asynchronous", asynchronousDevices(1)),
      over("verbs_lazy", lazy()), over("verbs_tiny", tinyDevices())};
  return all;
}

bool isRequired(const std::string&) { return true; }

}  // namespace test
GLOO_NAMESPACE_END

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(
      new gloo::test::NoMistakes);
  return RUN_ALL_TESTS();
}
