// What docs/algorithms.md says of when an algorithm is chosen, held against
// what is chosen with the parameters that are shipped.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "algorithms/collective_names.h"
#include "algorithms/selection.h"
#include "gloo/common/string.h"
#include "tools/gloo_simulate/descriptions.h"

namespace gloo_simulate {
namespace {

namespace algorithms = gloo::algorithms;
using algorithms::AlgorithmInfo;
using algorithms::Collective;

bool hasSizes(Collective collective) {
  return collective != Collective::kBarrier &&
         collective != Collective::kGatherv &&
         collective != Collective::kAlltoallv;
}

class Choices {
 public:
  void add(const std::string& transport, int ranks, int perHost,
           unsigned cores) {
    gloo::internal::Profile profile;
    profile.cores = cores;
    for (int rank = 0; rank < ranks; rank++) {
      profile.hostOfRank.push_back(rank / perHost);
    }
    const algorithms::Selection selection(profile, ranks, transport);
    const algorithms::Setting setting{0, ranks, 0, 2, selection.hosts()};
    for (const Collective collective : algorithms::collectives()) {
      for (const size_t bytes : kSizes) {
        const AlgorithmInfo* info =
            selection
                .choose(collective, setting, bytes, nullptr, size_t{1} << 20,
                        sizeof(float))
                .algorithm;
        first_.try_emplace(
            info, gloo::MakeString(transport, ", ", ranks, " ranks, ", perHost,
                                   " per host, ", cores, " cores (0: one for ",
                                   "each), ", bytes, " bytes"));
        algorithms_[collective].insert(info);
        if (!hasSizes(collective)) {
          break;
        }
      }
    }
  }

  // Where it was first; empty: nowhere.
  std::string first(const AlgorithmInfo& info) const {
    const auto it = first_.find(&info);
    return it == first_.end() ? "" : it->second;
  }
  size_t chosenOf(Collective collective) const {
    return algorithms_.at(collective).size();
  }

 private:
  static constexpr size_t kSizes[] = {0,
                                      1,
                                      4096,
                                      size_t{64} << 10,
                                      size_t{256} << 10,
                                      size_t{2} << 20,
                                      size_t{16} << 20,
                                      size_t{128} << 20};
  std::map<const AlgorithmInfo*, std::string> first_;
  std::map<Collective, std::set<const AlgorithmInfo*>> algorithms_;
};

TEST(SimulatedChoices, WhatIsSaidOfThemHolds) {
  Choices choices;
  for (const char* transport : {"tcp", "shm", "ibverbs", "auto"}) {
    for (const int ranks : {2, 3, 4, 6, 8, 16, 32}) {
      for (const int perHost : {1, 2, 3, ranks}) {
        for (const unsigned cores : {0, 1, 2}) {
          choices.add(transport, ranks, perHost, cores);
        }
      }
    }
  }
  for (const AlgorithmInfo& info : algorithms::catalogue()) {
    const Description* d = descriptionOf(info);
    ASSERT_NE(nullptr, d);
    const std::string first = choices.first(info);
    const std::string name = gloo::MakeString(
        nameOf(info.collective), " by ", info.name, ", of which ",
        "descriptions.cc says \"Chosen: ", d->chosen, "\"");
    if (info.byNameOnly || d->chosen.starts_with("never")) {
      EXPECT_EQ("", first) << name << ": it is";
    } else {
      EXPECT_NE("", first) << name << ": it is not, anywhere";
    }
    if (d->chosen == "always") {
      EXPECT_EQ(1u, choices.chosenOf(info.collective))
          << name << ": so are others";
    }
  }
}

}  // namespace
}  // namespace gloo_simulate
