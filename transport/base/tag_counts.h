// How often each tag was used, for tags that are not in use now. Callers use a
// few tags for ever, or each tag once and then the next: tags that follow each
// other with equal counts are one entry. Where there are too many entries, the
// lowest tags are forgotten: who takes ever new ones counts upwards. Steady
// state allocates nothing. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

class TagCounts {
 public:
  // At most so many entries are kept.
  explicit TagCounts(size_t limit = size_t{1} << 16) : limit_(limit) {}

  // Nothing if this tag's may be one of the counts that had to be forgotten: it
  // is never another than was put. 0 for a tag that was never put.
  std::optional<uint64_t> find(uint64_t tag) const;
  // The same; it is taken out. Where there is no memory for that, nothing has
  // changed; nor has it after put().
  std::optional<uint64_t> take(uint64_t tag);

  // REQUIRES: the tag is not here.
  void put(uint64_t tag, uint64_t count);

  size_t entries() const { return ranges_.size(); }

 private:
  struct Range {
    uint64_t last = 0;
    uint64_t count = 0;
  };
  using Ranges = std::map<uint64_t, Range>;  // by their first tag

  // The end where it is in none.
  Ranges::const_iterator rangeOf(uint64_t tag) const;
  std::optional<uint64_t> outside(uint64_t tag) const;
  void insert(uint64_t tag, const Range& range);
  void remove(Ranges::const_iterator at);

  const size_t limit_;
  Ranges ranges_;
  uint64_t known_ = 0;  // counts of tags below it, and not here, are forgotten
  std::vector<Ranges::node_type> spare_;  // that were removed, to be used again
};

}  // namespace transport::base
GLOO_NAMESPACE_END
