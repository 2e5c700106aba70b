// How many links of each kind a device has at the moment, over all its
// contexts: for people.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gloo/common/string.h"
#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// Thread-safe, without a lock: contexts also go in forked children.
class LinkTally {
 public:
  explicit LinkTally(const std::vector<std::string>& kinds) {
    for (const std::string& kind : kinds) {
      counts_.emplace_back(kind);
    }
  }

  // "3 over shm, 0 over tcp"; empty: there is no link.
  std::string str() const {
    std::string text;
    bool any = false;
    for (const Count& count : counts_) {
      const int links = count.links.load(std::memory_order_relaxed);
      text += MakeString(text.empty() ? "" : ", ", links, " over ", count.kind);
      any = any || links > 0;
    }
    return any ? text : std::string();
  }

  // Counts a link as long as it lives.
  class Entry {
   public:
    Entry() = default;
    Entry(std::shared_ptr<LinkTally> tally, const std::string& kind)
        : tally_(std::move(tally)), count_(tally_->find(kind)) {
      add(1);
    }
    Entry(Entry&& other) noexcept
        : tally_(std::move(other.tally_)),
          count_(std::exchange(other.count_, nullptr)) {}
    Entry& operator=(Entry other) noexcept {
      std::swap(tally_, other.tally_);
      std::swap(count_, other.count_);
      return *this;
    }
    ~Entry() { add(-1); }

   private:
    void add(int links) const {
      if (count_ != nullptr) {
        count_->fetch_add(links, std::memory_order_relaxed);
      }
    }

    std::shared_ptr<LinkTally> tally_;
    std::atomic<int>* count_ = nullptr;
  };

 private:
  struct Count {
    explicit Count(std::string name) : kind(std::move(name)) {}
    const std::string kind;
    std::atomic<int> links{0};  // relaxed: it says nothing of the links
  };

  std::atomic<int>* find(const std::string& kind) {
    const auto it =
        std::find_if(counts_.begin(), counts_.end(),
                     [&](const Count& count) { return count.kind == kind; });
    return it == counts_.end() ? nullptr : &it->links;
  }

  std::deque<Count> counts_;  // fixed; counts do not move
};

}  // namespace transport::base
GLOO_NAMESPACE_END
