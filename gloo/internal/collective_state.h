// What the collectives keep with a context: plans, scratch memory, profile.
// Implemented by algorithms/.
#pragma once

#include <memory>
#include <string>

#include "gloo/config.h"
#include "gloo/internal/profile.h"

GLOO_NAMESPACE_BEGIN
namespace transport {
class Context;
}

namespace internal {

// The profile that the ranks of a connected context agreed on. Implemented by
// transport/base.
GLOO_API std::shared_ptr<const Profile> profileOf(transport::Context& context);

// The kind of its device: "tcp", "shm", "ibverbs" or "auto"; equal on all ranks
// of a connected context. Empty if the transport is not one of ours.
// Implemented by transport/base.
GLOO_API std::string transportOf(transport::Context& context);

// Thread-safe. Does not keep the transport's context alive, which must outlive
// it.
class GLOO_API CollectiveState {
 public:
  virtual ~CollectiveState();

  // Of a connected context. Throws InvalidOperationException if the transport
  // has no channel.
  static std::shared_ptr<CollectiveState> make(transport::Context& context);

 protected:
  CollectiveState() = default;
};

}  // namespace internal
GLOO_NAMESPACE_END
