#include "rendezvous/mesh_store.h"

#include "rendezvous/record.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

MeshStore::MeshStore(Exchange exchange) : exchange_(std::move(exchange)) {}

void MeshStore::set(const std::string& key, const std::vector<char>& data) {
  std::call_once(exchanged_, [&] {
    const auto all = exchange_(data);
    std::vector<std::string> keys;
    for (size_t rank = 0; rank < all.size(); rank++) {
      keys.push_back(recordKey(static_cast<int>(rank)));
    }
    HashStore::multi_set(keys, all);
  });
  HashStore::multi_set({key}, {data});
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
