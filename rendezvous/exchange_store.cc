#include "gloo/rendezvous/exchange_store.h"

#include <utility>

#include "gloo/common/error.h"
#include "rendezvous/record.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

ExchangeStore::ExchangeStore(Exchange exchange)
    : exchange_(std::move(exchange)) {
  if (exchange_ == nullptr) {
    throw InvalidOperationException("ExchangeStore: the exchange is null");
  }
}

ExchangeStore::~ExchangeStore() = default;

void ExchangeStore::set(const std::string& key, const std::vector<char>& data) {
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
