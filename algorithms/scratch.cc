#include "algorithms/scratch.h"

#include <algorithm>
#include <bit>

GLOO_NAMESPACE_BEGIN
namespace algorithms {

Scratch ScratchPool::take(size_t bytes) {
  if (bytes == 0) {
    return {};
  }
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->bytes() >= bytes &&
        (best == free_.end() || it->bytes() < best->bytes())) {
      best = it;
    }
  }
  if (best == free_.end()) {
    // Few different sizes, so that calls of different sizes share.
    return Scratch(channel_, std::max<size_t>(4096, std::bit_ceil(bytes)));
  }
  Scratch result = std::move(*best);
  free_.erase(best);
  return result;
}

void ScratchPool::give(Scratch scratch) {
  if (scratch.bytes() == 0) {
    return;
  }
  free_.push_back(std::move(scratch));
  if (free_.size() > kMaxFree) {
    free_.erase(std::min_element(free_.begin(), free_.end(),
                                 [](const Scratch& a, const Scratch& b) {
                                   return a.bytes() < b.bytes();
                                 }));
  }
}

}  // namespace algorithms
GLOO_NAMESPACE_END
