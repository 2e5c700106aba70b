// For tests whose ranks are processes of two guests: the same test runs in
// both.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "gloo/common/string.h"
#include "tests/multiprocess/job.h"
#include "tests/support/hosts.h"
#include "tests/support/transports.h"

GLOO_NAMESPACE_BEGIN
namespace test {

class TwoHostsTest : public ::testing::Test {
 protected:
  TwoHostsTest() : place_(nameOfUse()) { serveMeetingPlace(); }

  void SetUp() override {
    ASSERT_EQ(hosts().count, 2) << "to be run in two guests";
  }

  // Process i of guest g is rank 2 * i + g.
  Job::Options options(int processes, const std::string& job = "job") const {
    Job::Options options;
    options.size = processes;
    options.total = 2 * processes;
    options.rankOf = [](int process) { return 2 * process + hosts().own; };
    options.wrap = [name = place_ + "." + job](
                       int, const std::shared_ptr<rendezvous::Store>&) {
      return meetingPlace(name);
    };
    options.timeout = std::chrono::seconds(15) * patience();
    return options;
  }

  void say(const std::string& what,
           const std::vector<char>& bytes = {'1'}) const {
    meetingPlace(place_)->set(what, bytes);
  }
  void await(const std::string& what) const {
    meetingPlace(place_)->wait({what}, std::chrono::seconds(60) * patience());
  }
  // What the other guest says when this one says its own.
  int64_t others(const std::string& what, int64_t own) const {
    const std::string text = std::to_string(own);
    say(MakeString(what, hosts().own), {text.begin(), text.end()});
    const std::string others = MakeString(what, 1 - hosts().own);
    await(others);
    const std::vector<char> said = meetingPlace(place_)->get(others);
    return std::stoll(std::string(said.begin(), said.end()));
  }
  // The longer of two times, each of which one guest knows.
  std::chrono::nanoseconds longest(const std::string& what,
                                   std::chrono::nanoseconds own) const {
    return std::max(own, std::chrono::nanoseconds(others(what, own.count())));
  }
  // Returns when both guests have called it.
  void meet(const std::string& what) const {
    say(MakeString(what, hosts().own));
    await(MakeString(what, 1 - hosts().own));
  }

 private:
  const std::string place_;
};

}  // namespace test
GLOO_NAMESPACE_END
