#include "transport/base/crowding.h"

#include <algorithm>

#include "gloo/internal/cores.h"
#include "transport/base/topology.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

bool isIn(const RankCores& rank, uint64_t group) {
  return std::any_of(
      rank.quotas.begin(), rank.quotas.end(),
      [&](const RankCores::Quota& quota) { return quota.group == group; });
}

}  // namespace

RankCores RankCores::own(int ranks) {
  RankCores own;
  own.cores = internal::allowedCores();
  own.ranks = ranks;
  own.node = Topology::instance().home();
  const auto& quotas = internal::ownCoreQuotas();
  for (size_t i = 0; i < std::min(kQuotas, quotas.size()); i++) {
    own.quotas[i] = {quotas[i].group, quotas[i].whole()};
  }
  return own;
}

bool isCrowded(const std::vector<RankCores>& ranks) {
  const auto size = static_cast<int64_t>(ranks.size());
  cpu_set_t cores;
  CPU_ZERO(&cores);
  int64_t all = size;
  for (const RankCores& rank : ranks) {
    CPU_OR(&cores, &cores, &rank.cores);
    all = std::max<int64_t>(all, rank.ranks);
  }
  const auto exceeds = [&](const RankCores::Quota& quota) {
    const int64_t members = std::count_if(
        ranks.begin(), ranks.end(),
        [&](const RankCores& rank) { return isIn(rank, quota.group); });
    // Where all of these are, those of other contexts are as well.
    return quota.group != 0 && (members == size ? all : members) > quota.cores;
  };
  return all > CPU_COUNT(&cores) ||
         std::any_of(ranks.begin(), ranks.end(), [&](const RankCores& rank) {
           return std::any_of(rank.quotas.begin(), rank.quotas.end(), exceeds);
         });
}

}  // namespace transport::base
GLOO_NAMESPACE_END
