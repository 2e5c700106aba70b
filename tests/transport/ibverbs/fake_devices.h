// Devices of the ibverbs transport over RDMA devices in memory.
#pragma once

#include <string>

#include "gloo/config.h"
#include "gloo/transport/ibverbs/device.h"
#include "tests/support/fake_verbs/fake_verbs.h"
#include "tests/support/spawn.h"

GLOO_NAMESPACE_BEGIN
namespace test {

struct FakeDevices {
  FakeVerbsConfig config;
  transport::ibverbs::attr attr;
  bool lazy = false;
};

// As fast as it goes; as a device does it, in random order; and with the least
// of everything.
FakeDevices plainDevices();
FakeDevices asynchronousDevices(uint64_t seed);
FakeDevices tinyDevices();

// Makes devices; all ranks of a test share one FakeVerbs, which the first of
// them makes anew if the last test had another configuration.
DeviceMaker fakeVerbsDevices(const FakeDevices& devices);

// The one of the test that runs.
FakeVerbs& fakeVerbs();

// Of the test that has ended; "" if the transport made no mistake: objects that
// are left, calls that a correct program does not make, sends that met no
// receive. Ends the FakeVerbs.
std::string mistakesOfFakeVerbs();

}  // namespace test
GLOO_NAMESPACE_END
