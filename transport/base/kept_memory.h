// Memory whose registration outlives the operations that use it.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "gloo/internal/channel.h"
#include "transport/base/fork.h"
#include "transport/base/link.h"

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

  const char* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  bool holds(const internal::Operation& op) const;
  size_t offsetOf(const internal::Operation& op) const {
    return static_cast<size_t>(op.data - data_);
  }
  // Null: the link needs none.
  std::shared_ptr<const Region> regionFor(Rights rights);
  // The context ends first.
  void release() { regions_ = {}; }

 private:
  static constexpr size_t kRights = 5;

  Context& context_;
  const std::weak_ptr<const void> alive_;  // as long as the context
  Origin origin_;
  const MemoryKind kind_;
  const bool bothWays_;
  char* const data_;
  const size_t bytes_;
  // Also an operation's that uses the same memory, but not through this.
  std::array<std::shared_ptr<const Region>, kRights> regions_;
};

}  // namespace transport::base
GLOO_NAMESPACE_END
