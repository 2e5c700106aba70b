#include "tests/support/hosts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "gloo/common/string.h"
#include "gloo/rendezvous/prefix_store.h"
#include "tests/support/process_group.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

int number(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : otherwise;
}

Hosts readHosts() {
  Hosts hosts;
  if (const char* store = std::getenv("GLOO_TEST_HOSTS")) {
    hosts.store = store;
    hosts.count = number("GLOO_GUESTS", 1);
    hosts.own = number("GUEST", 0);
  }
  return hosts;
}

// openStore's rank of the one that serves.
constexpr int kServes = 0;
constexpr int kServesNot = 1;

// Host 0 serves until the others have finished too.
class MeetingPlace {
 public:
  MeetingPlace()
      : owner_(::getpid()),
        store_(rendezvous::openStore(
            hosts().store, hosts().own == 0 ? kServes : kServesNot)) {}
  ~MeetingPlace() {
    if (::getpid() != owner_) {
      return;  // a forked child
    }
    try {
      if (hosts().own == 0) {
        store_->wait({"finished"}, std::chrono::seconds(60) * patience());
      } else {
        store_->set("finished", {'1'});
      }
    } catch (const std::exception&) {
      // Then it was gone before it could answer.
    }
  }
  MeetingPlace(const MeetingPlace&) = delete;
  MeetingPlace& operator=(const MeetingPlace&) = delete;

 private:
  const pid_t owner_;
  const std::shared_ptr<rendezvous::Store> store_;
};

}  // namespace

const Hosts& hosts() {
  static const Hosts found = readHosts();
  return found;
}

void serveMeetingPlace() {
  if (hosts().count > 1) {
    static const MeetingPlace place;
  }
}

std::shared_ptr<rendezvous::Store> meetingPlace(const std::string& name) {
  return std::make_shared<rendezvous::PrefixStore>(
      name, rendezvous::openStore(hosts().store, kServesNot));
}

std::string nameOfUse() {
  static std::string last;
  static int uses = 0;
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string name =
      MakeString(test->test_suite_name(), ".", test->name());
  uses = name == last ? uses + 1 : 0;
  last = name;
  return MakeString(name, "#", uses);
}

}  // namespace test
GLOO_NAMESPACE_END
