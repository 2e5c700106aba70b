#include "gloo/launch.h"

#include <cstdlib>

#include "gloo/rendezvous/hash_store.h"
#include "rendezvous/launch_sources.h"

GLOO_NAMESPACE_BEGIN
namespace launch {

namespace {

constexpr char kFileScheme[] = "file://";
constexpr size_t kFileSchemeLength = sizeof kFileScheme - 1;

std::optional<std::string> fromProcess(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr || *value == '\0') {
    return std::nullopt;
  }
  return value;
}

}  // namespace

Environment fromEnv() {
  Environment environment = resolve(&fromProcess);
  if (!fromProcess("GLOO_STORE") &&
      environment.store.rfind(kFileScheme, 0) == 0) {
    makeJobDirectory(environment.store.substr(kFileSchemeLength));
  }
  return environment;
}

std::shared_ptr<rendezvous::Context> connect(
    std::shared_ptr<transport::Device>& device) {
  const Environment environment = fromEnv();
  auto context =
      std::make_shared<rendezvous::Context>(environment.rank, environment.size);
  std::shared_ptr<rendezvous::Store> store;
  if (environment.store.empty()) {
    store = std::make_shared<rendezvous::HashStore>();
  } else {
    store = rendezvous::openStore(environment.store, environment.rank);
  }
  context->connectFullMesh(store, device);
  return context;
}

}  // namespace launch
GLOO_NAMESPACE_END
