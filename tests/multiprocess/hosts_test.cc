// Ranks on several hosts, as this machine can have them: GLOO_HOST_ID tells
// processes that they are on different ones, so that the automatic device uses
// shared memory inside and TCP between these.
#include "tests/support/hierarchy.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "gloo/transport/auto/device.h"
#include "gloo/transport/shm/device.h"
#include "tests/multiprocess/job.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using Hosts = std::vector<int>;

Job::Options onHosts(const Hosts& hostOfRank, const std::string& allreduce) {
  Job::Options options;
  options.size = static_cast<int>(hostOfRank.size());
  options.device = [=](int rank) {
    const int host = hostOfRank[static_cast<size_t>(rank)];
    setenv("GLOO_HOST_ID", std::to_string(host).c_str(), 1);
    setenv("GLOO_ALGORITHM",
           testing_support::hierarchicalWith(allreduce).c_str(), 1);
    transport::DeviceAttr attr;
    attr.tcp.hostname = "127.0.0.1";
    return transport::CreateDevice(attr);
  };
  return options;
}

class HostsTest : public ::testing::TestWithParam<Hosts> {};

TEST_P(HostsTest, HierarchicalCollectivesGiveWhatTheOracleSays) {
  const Hosts hosts = GetParam();
  for (const char* allreduce : {"hierarchical_ring", "hierarchical_doubling"}) {
    Job job(onHosts(hosts, allreduce),
            [&](Child&, const std::shared_ptr<Context>& context) {
              EXPECT_EQ("", testing_support::checkOnHosts(context, hosts,
                                                          {0, 1, 300, 20001}));
            });
    job.go();
    for (int rank = 0; rank < job.group().size(); rank++) {
      const Failure failure = job.failure(rank, std::chrono::seconds(60));
      EXPECT_EQ("none", failure.type) << "rank " << rank << failure.text;
    }
    job.group().joinAll();
  }
}

INSTANTIATE_TEST_SUITE_P(, HostsTest,
                         ::testing::Values(Hosts{0, 1, 0, 1},
                                           Hosts{0, 0, 0, 1, 2, 2}),
                         [](const auto& info) {
                           std::string name;
                           for (const int host : info.param) {
                             name += std::to_string(host);
                           }
                           return name;
                         });

TEST(ToldApartTest, ARankThatIsKilledIsNamedOnEveryHost) {
  constexpr int kVictim = 3;
  Job job(onHosts({0, 0, 1, 1}, "hierarchical_ring"),
          [](Child& child, const std::shared_ptr<Context>& context) {
            for (int turn = 0;; turn++) {
              testing_support::compareBits(context, 100000);
              if (turn == 3) {
                child.say("now");
              }
            }
          });
  job.go();
  job.group().expectAll("now");
  const auto killed = now();
  job.group().signal(kVictim, SIGKILL);
  job.expectDeath(kVictim, killed);
}

// Only the automatic device has something else to use.
TEST(ToldApartTest, RanksThatAreToldApartShareNoMemory) {
  Job::Options options;
  options.size = 2;
  options.timeout = std::chrono::seconds(1);
  options.device = [](int rank) {
    setenv("GLOO_HOST_ID", std::to_string(rank).c_str(), 1);
    return transport::shm::CreateDevice();
  };
  Job job(options, [](Child&, const std::shared_ptr<Context>&) {});
  bool isNamed = false;
  for (int rank = 0; rank < 2; rank++) {
    const Failure failure = job.failureWherever(rank);
    EXPECT_EQ("Io", failure.type) << failure.text;
    isNamed |= failure.names("GLOO_HOST_ID");
  }
  EXPECT_TRUE(isNamed);
  job.group().joinAll();
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
