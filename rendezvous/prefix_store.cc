#include "gloo/rendezvous/prefix_store.h"

#include "gloo/common/error.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

PrefixStore::PrefixStore(const std::string& prefix,
                         std::shared_ptr<Store> store)
    : prefix_(prefix), store_(std::move(store)) {}

PrefixStore::PrefixStore(const std::string& prefix, Store& store)
    : PrefixStore(prefix,
                  std::shared_ptr<Store>(std::shared_ptr<void>(), &store)) {}

PrefixStore::~PrefixStore() = default;

Store& PrefixStore::store() const {
  if (store_ == nullptr) {
    throw InvalidOperationException("PrefixStore: the store is null");
  }
  return *store_;
}

std::string PrefixStore::joinKey(const std::string& key) const {
  return prefix_ + "/" + key;
}

std::vector<std::string> PrefixStore::joinKeys(
    const std::vector<std::string>& keys) const {
  std::vector<std::string> joined;
  joined.reserve(keys.size());
  for (const auto& key : keys) {
    joined.push_back(joinKey(key));
  }
  return joined;
}

void PrefixStore::set(const std::string& key, const std::vector<char>& data) {
  store().set(joinKey(key), data);
}

std::vector<char> PrefixStore::get(const std::string& key) {
  return store().get(joinKey(key));
}

std::vector<char> PrefixStore::wait_get(
    const std::string& key, const std::chrono::milliseconds& timeout) {
  return store().wait_get(joinKey(key), timeout);
}

void PrefixStore::wait(const std::vector<std::string>& keys) {
  store().wait(joinKeys(keys));
}

void PrefixStore::wait(const std::vector<std::string>& keys,
                       const std::chrono::milliseconds& timeout) {
  store().wait(joinKeys(keys), timeout);
}

bool PrefixStore::has_v2_support() { return store().has_v2_support(); }

std::vector<std::vector<char>> PrefixStore::multi_get(
    const std::vector<std::string>& keys) {
  return store().multi_get(joinKeys(keys));
}

void PrefixStore::multi_set(const std::vector<std::string>& keys,
                            const std::vector<std::vector<char>>& values) {
  store().multi_set(joinKeys(keys), values);
}

void PrefixStore::append(const std::string& key,
                         const std::vector<char>& value) {
  store().append(joinKey(key), value);
}

int64_t PrefixStore::add(const std::string& key, int64_t value) {
  return store().add(joinKey(key), value);
}

bool PrefixStore::has_peek_support() const {
  return store().has_peek_support();
}

std::vector<std::optional<std::vector<char>>> PrefixStore::peek(
    const std::vector<std::string>& keys) {
  return store().peek(joinKeys(keys));
}

bool PrefixStore::wait_any(const std::vector<std::string>& keys,
                           Deadline deadline) {
  return store().wait_any(joinKeys(keys), deadline);
}

bool PrefixStore::waits_for_all() const { return store().waits_for_all(); }

std::string PrefixStore::str() const {
  return MakeString(store().str(), ", prefix ", prefix_);
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
