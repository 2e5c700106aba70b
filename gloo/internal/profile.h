// Values that select algorithms and that must be equal on all ranks: agreed at
// connectFullMesh from rank 0's environment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

// Immutable once a context is connected.
struct Profile {
  // "collective=algorithm,..." from GLOO_ALGORITHM; empty: choose by cost.
  std::string forced;
  // Bytes of a pipeline segment; 0: by the cost model. GLOO_SEGMENT_BYTES.
  uint64_t segmentBytes = 0;
  // Contents of the file GLOO_TUNING_FILE names; empty: shipped defaults.
  std::string tuning;
  // Processors that the ranks of a host share; 0: not known. Nobody has to
  // agree: rank 0's count for all.
  uint32_t cores = 0;
  // Number of the host of each rank, 0.. in order of first appearance; filled
  // from the peers' addresses, not from the environment.
  std::vector<int> hostOfRank;

  // What this process's environment asks for.
  GLOO_API static Profile fromEnvironment();

  // The agreed part (not hostOfRank), versioned.
  GLOO_API std::vector<char> serialize() const;
  GLOO_API static Profile deserialize(const std::vector<char>& bytes);

  // Empty if the agreed parts are equal, else names the first variable that
  // differs with both values.
  GLOO_API std::string difference(const Profile& other) const;
};

}  // namespace internal
GLOO_NAMESPACE_END
