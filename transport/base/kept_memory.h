// Memory whose registration outlives the operations that use it.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "gloo/internal/channel.h"
#include "transport/base/fork.h"
#include "transport/base/link.h"
#include "transport/base/progress.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

class Context;

// Registered with the rights of each use when that use first comes. Its
// destructor takes the domain's lock; the rest REQUIRES it.
class KeptMemory final : public internal::KeptMemory {
 public:
  // `bothWays`: see Channel::keep.
  KeptMemory(Context& context, MemoryKind kind, void* data, size_t bytes,
             bool bothWays);
  ~KeptMemory() override;

  using ByFirstByte = std::multimap<const char*, KeptMemory*>;
  // What to register for the operation, or what is registered for that use
  // already: of the latter the shortest, whoever owns it. Else, of what is no
  // more than the operation's owner has (Operation::within), the longest: a
  // caller's buffer rather than what is kept for one call. Of equal ones the
  // oldest; the nearest few are looked at. Null: there is none. It may be
  // another owner's, who goes first.
  static KeptMemory* of(const ByFirstByte& all, const internal::Operation& op,
                        Rights rights);
  // The same for `bytes` of memory that the owner has.
  static KeptMemory* of(const ByFirstByte& all,
                        const internal::MemoryRange& bytes,
                        const internal::MemoryRange& owned, Rights rights);

  const char* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  size_t offsetOf(const internal::Operation& op) const {
    return static_cast<size_t>(op.data - data_);
  }
  // Null: the link needs none.
  std::shared_ptr<const Region> regionFor(Rights rights);
  bool isRegistered(Rights rights) const {
    return regions_->of.at(static_cast<size_t>(effective(rights))) != nullptr;
  }
  // Whether regionFor would register so much that others should not wait for
  // it.
  bool takesLong(Rights rights) const;
  // Registers with `factory`, the context's, without the lock, so that others
  // go on; has it again when it returns, or throws as regionFor does. This may
  // be gone then, and whatever else the lock guards may have changed.
  void registerAhead(ProgressDomain::Lock& lock, LinkFactory& factory,
                     Rights rights);
  // The context ends first.
  void release() { (void)regions_->end(); }

 private:
  static constexpr size_t kRights = 5;
  // What takes a millisecond or more, mostly to fault the memory in.
  static constexpr size_t kLong = size_t{1} << 20;

  using ByRights = std::array<std::shared_ptr<const Region>, kRights>;

  // Outlives this while somebody registers.
  struct Regions {
    // Of the one who registers without the domain's lock. Taken before that.
    std::mutex turn;
    // Under the domain's lock. Also an operation's that uses the same memory,
    // but not through this.
    ByRights of;
    bool ended = false;

    // What it held: to deregister it takes long, and needs no lock.
    [[nodiscard]] ByRights end() {
      ended = true;
      return std::exchange(of, {});
    }
  };

  Rights effective(Rights rights) const;

  Context& context_;
  const std::weak_ptr<const void> alive_;  // as long as the context
  Origin origin_;
  const MemoryKind kind_;
  const bool bothWays_;
  char* const data_;
  const size_t bytes_;
  const std::shared_ptr<Regions> regions_ = std::make_shared<Regions>();
};

}  // namespace transport::base
GLOO_NAMESPACE_END
