#include "transport/base/tag_counts.h"

#include <iterator>

GLOO_NAMESPACE_BEGIN
namespace transport::base {

std::optional<uint64_t> TagCounts::take(uint64_t tag) {
  const auto after = ranges_.upper_bound(tag);
  if (after == ranges_.begin() || std::prev(after)->second.last < tag) {
    return forgotten_ ? std::nullopt : std::optional<uint64_t>(0);
  }
  const auto at = std::prev(after);
  const Range range = at->second;
  if (tag < range.last) {
    ranges_.emplace_hint(after, tag + 1, range);
  }
  if (at->first == tag) {
    ranges_.erase(at);
  } else {
    at->second.last = tag - 1;
  }
  return range.count;
}

void TagCounts::put(uint64_t tag, uint64_t count) {
  const auto after = ranges_.upper_bound(tag);
  const bool joinsAfter = after != ranges_.end() && after->first == tag + 1 &&
                          after->second.count == count;
  if (after != ranges_.begin()) {
    Range& before = std::prev(after)->second;
    if (before.last + 1 == tag && before.count == count) {
      before.last = joinsAfter ? after->second.last : tag;
      if (joinsAfter) {
        ranges_.erase(after);
      }
      return;
    }
  }
  if (joinsAfter) {
    auto node = ranges_.extract(after);
    node.key() = tag;
    ranges_.insert(std::move(node));
  } else if (ranges_.size() < limit_) {
    ranges_.emplace_hint(after, tag, Range{tag, count});
  } else {
    forgotten_ = true;
  }
}

}  // namespace transport::base
GLOO_NAMESPACE_END
