// Tests that several hosts run together: each runs the same tests in the same
// order, and the processes of a test are dealt out to them.
//
// GLOO_TEST_HOSTS is the URL of a store that all reach; a tcp:// one is served
// by host 0. GLOO_GUESTS is their number, GUEST which one this is (see
// tests/soft_roce/run_in_guest.sh). Without GLOO_TEST_HOSTS there is one host.
#pragma once

#include <memory>
#include <string>

#include "gloo/config.h"
#include "gloo/rendezvous/store.h"

GLOO_NAMESPACE_BEGIN
namespace test {

struct Hosts {
  int count = 1;
  int own = 0;
  std::string store;
};

const Hosts& hosts();

// To be called before the first fork of a process that uses meetingPlace(). At
// its end the process waits for the other hosts.
void serveMeetingPlace();

// A store of this name that all hosts share, for one use of one test.
std::shared_ptr<rendezvous::Store> meetingPlace(const std::string& name);

// For one more use within the test that runs: equal on all hosts.
std::string nameOfUse();

}  // namespace test
GLOO_NAMESPACE_END
