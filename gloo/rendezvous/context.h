// Contexts that connect themselves.
#pragma once

#include <cstddef>
#include <memory>

#include "gloo/common/error.h"
#include "gloo/context.h"
#include "gloo/rendezvous/store.h"
#include "gloo/transport/address.h"
#include "gloo/transport/device.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// A context that finds its peers through a store.
class GLOO_API Context : public ::gloo::Context {
 public:
  Context(int rank, int size, int base = 2);
  ~Context() override;

  // Connects to every other rank; all ranks call it, with stores that show the
  // same contents. Blocks; throws RendezvousException, or another IoException,
  // by the context's timeout. Two contexts that are connected at the same time
  // through one store need different PrefixStores.
  //
  // Called again, with another prefix: the new connections take the place of
  // the old ones, which are closed. Not while operations run; pairs of the old
  // ones are gone, and their buffers are of no more use. Options of collectives
  // serve the new ones; what the collectives' classes have made does not, and
  // its run() throws InvalidOperationException.
  void connectFullMesh(std::shared_ptr<Store> store,
                       std::shared_ptr<transport::Device>& device);
  // The store is used during the call only.
  void connectFullMesh(Store& store,
                       std::shared_ptr<transport::Device>& device);
};

// Makes further contexts between the ranks of a connected one, without a
// store: the addresses travel over the existing mesh.
class GLOO_API ContextFactory {
 public:
  static constexpr size_t kMaxAddressSize = transport::Address::kMaxByteSize;

  explicit ContextFactory(std::shared_ptr<::gloo::Context> backingContext);

  // All ranks of the backing context call it, in the same order. The result
  // has the backing context's rank, size, base and timeout. Throws what
  // connectFullMesh() does.
  std::shared_ptr<::gloo::Context> makeContext(
      std::shared_ptr<transport::Device>& device);

 private:
  const std::shared_ptr<::gloo::Context> backing_;
};

}  // namespace rendezvous
GLOO_NAMESPACE_END
