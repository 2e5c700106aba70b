// Whether ranks share cores: the one decision of what all of them know.
#pragma once

#include <sched.h>

#include <array>
#include <cstdint>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// What a rank has to say of its cores. Travels between processes of one host.
struct RankCores {
  // Of a cgroup that it is in: so many threads may be busy in it.
  struct Quota {
    uint64_t group = 0;  // 0: there is none
    int32_t cores = 0;
  };
  // More than there are containers in each other that set one, usually.
  static constexpr size_t kQuotas = 4;

  cpu_set_t cores{};  // that it may run on
  std::array<Quota, kQuotas> quotas{};
  int32_t ranks = 0;  // that share them: other contexts may have more
  int32_t node = -1;  // on which its thread is to run: Topology::home()

  // Of the calling thread's, which has so many ranks beside it.
  static RankCores own(int ranks);
};

// Whether there are more ranks than all cores that any of them may run on, or
// more in one container than its quota keeps busy. Ranks may be in different
// containers: each quota counts for those that are under it.
bool isCrowded(const std::vector<RankCores>& ranks);

}  // namespace transport::base
GLOO_NAMESPACE_END
