#include "transport/base/tag_counts.h"

#include <algorithm>
#include <iterator>
#include <utility>

GLOO_NAMESPACE_BEGIN
namespace transport::base {

TagCounts::Ranges::const_iterator TagCounts::rangeOf(uint64_t tag) const {
  const auto after = ranges_.upper_bound(tag);
  return after == ranges_.begin() || std::prev(after)->second.last < tag
             ? ranges_.end()
             : std::prev(after);
}

// Of a tag that is in no range.
std::optional<uint64_t> TagCounts::outside(uint64_t tag) const {
  return tag < known_ ? std::nullopt : std::optional<uint64_t>(0);
}

std::optional<uint64_t> TagCounts::find(uint64_t tag) const {
  const auto at = rangeOf(tag);
  return at == ranges_.end() ? outside(tag) : at->second.count;
}

std::optional<uint64_t> TagCounts::take(uint64_t tag) {
  const auto at = rangeOf(tag);
  if (at == ranges_.end()) {
    return outside(tag);
  }
  const uint64_t first = at->first;
  const Range range = at->second;
  if (first == tag) {
    remove(at);  // and its place is used again
  }
  if (tag < range.last) {
    insert(tag + 1, range);
  }
  if (first < tag) {
    ranges_.find(first)->second.last = tag - 1;
  }
  return range.count;
}

void TagCounts::put(uint64_t tag, uint64_t count) {
  const auto after = ranges_.upper_bound(tag);
  Range* const before =
      after == ranges_.begin() ? nullptr : &std::prev(after)->second;
  Range range{tag, count};
  if (after != ranges_.end() && after->first == tag + 1 &&
      after->second.count == count) {
    range.last = after->second.last;
    remove(after);
  }
  if (before != nullptr && before->last + 1 == tag && before->count == count) {
    before->last = range.last;
    return;
  }
  insert(tag, range);
  while (ranges_.size() > limit_) {
    known_ = std::max(known_, ranges_.begin()->second.last + 1);
    remove(ranges_.begin());
  }
}

void TagCounts::insert(uint64_t tag, const Range& range) {
  if (spare_.empty()) {
    if (ranges_.size() >= spare_.capacity()) {
      spare_.reserve(std::max<size_t>(64, 2 * ranges_.size()));
    }
    ranges_.emplace(tag, range);
    return;
  }
  Ranges::node_type node = std::move(spare_.back());
  spare_.pop_back();
  node.key() = tag;
  node.mapped() = range;
  ranges_.insert(std::move(node));
}

// There is room for all nodes that there are: this allocates nothing.
void TagCounts::remove(Ranges::const_iterator at) {
  spare_.push_back(ranges_.extract(at));
}

}  // namespace transport::base
GLOO_NAMESPACE_END
