#include "gloo/internal/mesh.h"

#include "gloo/internal/profile.h"
#include "gloo/transport/context.h"
#include "rendezvous/connect_mesh.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

void connectMesh(transport::Context& context, IStore& store,
                 Deadline deadline) {
  rendezvous::connectMesh(Mesh::of(context), store, deadline,
                          Profile::fromEnvironment());
}

}  // namespace internal
GLOO_NAMESPACE_END
