#include "algorithms/scratch.h"

#include <algorithm>
#include <bit>

GLOO_NAMESPACE_BEGIN
namespace algorithms {

namespace {

// From here on, memory is worth more than the time of making it anew.
constexpr size_t kLong = 4 << 20;
constexpr uint64_t kPatience = 32;  // takes, two for a call at most

// Few different sizes, so that calls of different sizes share; of long ones an
// eighth too much at most.
size_t sizeFor(size_t bytes) {
  const size_t power = std::max<size_t>(4096, std::bit_ceil(bytes));
  const size_t step = power <= kLong ? power : power / 16;
  return (bytes + step - 1) / step * step;
}

}  // namespace

Scratch makeScratch(internal::Channel& channel, size_t bytes) {
  return bytes == 0 ? Scratch() : Scratch(channel, sizeFor(bytes));
}

Scratch ScratchPool::take(size_t bytes, Scratch& stale) {
  takes_++;
  const auto old =
      std::find_if(free_.begin(), free_.end(), [this](const Scratch& scratch) {
        return scratch.bytes() > kLong && takes_ - scratch.lastUse > kPatience;
      });
  if (old != free_.end()) {
    stale = std::move(*old);
    free_.erase(old);
  }
  if (bytes == 0) {
    return {};
  }
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    // What is used by calls that need little of it would never go.
    const bool isFit = it->bytes() <= kLong || it->bytes() / 4 <= bytes;
    if (it->bytes() >= bytes && isFit &&
        (best == free_.end() || it->bytes() < best->bytes())) {
      best = it;
    }
  }
  if (best == free_.end()) {
    return {};
  }
  Scratch result = std::move(*best);
  free_.erase(best);
  return result;
}

Scratch ScratchPool::give(Scratch scratch) {
  if (scratch.bytes() == 0) {
    return {};
  }
  scratch.lastUse = takes_;
  free_.push_back(std::move(scratch));
  if (free_.size() <= kMaxFree) {
    return {};
  }
  const auto least = std::min_element(
      free_.begin(), free_.end(),
      [](const Scratch& a, const Scratch& b) { return a.bytes() < b.bytes(); });
  Scratch surplus = std::move(*least);
  free_.erase(least);
  return surplus;
}

}  // namespace algorithms
GLOO_NAMESPACE_END
