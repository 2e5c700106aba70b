#include "algorithms/hosts.h"

#include <algorithm>
#include <map>

GLOO_NAMESPACE_BEGIN
namespace algorithms {

HostMap::HostMap(const std::vector<int>& hostOfRank) {
  std::map<int, int> numbers;
  std::vector<std::vector<int>> members;
  for (const int host : hostOfRank) {
    const auto next = static_cast<int>(numbers.size());
    const int number = numbers.try_emplace(host, next).first->second;
    members.resize(numbers.size());
    auto& ranks = members[static_cast<size_t>(number)];
    indices_.push_back(static_cast<int>(ranks.size()));
    ranks.push_back(size());
    hosts_.push_back(number);
  }
  for (const auto& ranks : members) {
    begins_.push_back(static_cast<int>(ranks_.size()));
    ranks_.insert(ranks_.end(), ranks.begin(), ranks.end());
    lanes_ = std::max(lanes_, static_cast<int>(ranks.size()));
    hostsByRanks_[static_cast<int>(ranks.size())]++;
  }
  begins_.push_back(size());
}

HostMap HostMap::ofEqualHosts(int size, int ranksPerHost) {
  std::vector<int> hostOfRank;
  hostOfRank.reserve(static_cast<size_t>(size));
  for (int rank = 0; rank < size; rank++) {
    hostOfRank.push_back(rank / std::max(1, ranksPerHost));
  }
  return HostMap(hostOfRank);
}

}  // namespace algorithms
GLOO_NAMESPACE_END
