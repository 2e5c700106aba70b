#include "gloo/rendezvous/context.h"

#include "gloo/common/error.h"
#include "gloo/rendezvous/exchange_store.h"
#include "rendezvous/exchange.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

namespace {

// A connected context without a store of its own.
class ConnectedContext : public ::gloo::Context {
 public:
  ConnectedContext(const ::gloo::Context& like,
                   std::shared_ptr<transport::Device> device,
                   std::shared_ptr<transport::Context> transportContext)
      : ::gloo::Context(like.rank, like.size, like.base) {
    attach(std::move(device), std::move(transportContext));
    setTimeout(like.getTimeout());
  }
};

// Connected and timed like `context`.
std::shared_ptr<transport::Context> connect(
    const ::gloo::Context& context,
    const std::shared_ptr<transport::Device>& device,
    std::shared_ptr<IStore> store) {
  if (device == nullptr) {
    throw InvalidOperationException("connectFullMesh: the device is null");
  }
  auto connected = device->createContext(context.rank, context.size);
  connected->setTimeout(context.getTimeout());
  connected->createAndConnectAllPairs(std::move(store));
  return connected;
}

}  // namespace

Context::Context(int rank, int size, int base)
    : ::gloo::Context(rank, size, base) {}

Context::~Context() = default;

void Context::connectFullMesh(std::shared_ptr<Store> store,
                              std::shared_ptr<transport::Device>& device) {
  if (store == nullptr) {
    throw InvalidOperationException("connectFullMesh: the store is null");
  }
  attach(device, connect(*this, device, std::move(store)));
}

void Context::connectFullMesh(Store& store,
                              std::shared_ptr<transport::Device>& device) {
  connectFullMesh(std::shared_ptr<Store>(std::shared_ptr<void>(), &store),
                  device);
}

ContextFactory::ContextFactory(std::shared_ptr<::gloo::Context> backingContext)
    : backing_(std::move(backingContext)) {
  if (backing_ == nullptr) {
    throw InvalidOperationException("ContextFactory: the context is null");
  }
}

std::shared_ptr<::gloo::Context> ContextFactory::makeContext(
    std::shared_ptr<transport::Device>& device) {
  auto store = std::make_shared<ExchangeStore>(
      [backing = backing_](const std::vector<char>& mine) {
        return exchangeAll(*backing, mine,
                           Deadline::after(backing->getTimeout()));
      });
  auto connected = connect(*backing_, device, store);
  return std::make_shared<ConnectedContext>(*backing_, device,
                                            std::move(connected));
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
