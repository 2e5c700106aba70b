#include "gloo/rendezvous/hash_store.h"

#include <unistd.h>

#include "gloo/common/error.h"
#include "rendezvous/decimal.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

HashStore::HashStore()
    : process_(::getpid()),
      changed_(std::make_unique<std::condition_variable>()) {}

// In a forked child those that waited for it are not there to be waited for.
HashStore::~HashStore() {
  if (::getpid() != process_) {
    static_cast<void>(changed_.release());
  }
}

void HashStore::set(const std::string& key, const std::vector<char>& data) {
  multi_set({key}, {data});
}

void HashStore::multi_set(const std::vector<std::string>& keys,
                          const std::vector<std::vector<char>>& values) {
  if (keys.size() != values.size()) {
    throw InvalidOperationException(MakeString(
        "multi_set: ", keys.size(), " keys but ", values.size(), " values"));
  }
  {
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < keys.size(); i++) {
      values_[keys[i]] = values[i];
    }
  }
  changed_->notify_all();
}

void HashStore::append(const std::string& key, const std::vector<char>& value) {
  {
    std::lock_guard lock(mutex_);
    auto& stored = values_[key];
    stored.insert(stored.end(), value.begin(), value.end());
  }
  changed_->notify_all();
}

int64_t HashStore::add(const std::string& key, int64_t value) {
  int64_t sum = 0;
  {
    std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    std::vector<char> text;
    if (found != values_.end()) {
      text = found->second;
    }
    sum = addToDecimal(text, value, key);
    values_[key] = std::move(text);
  }
  changed_->notify_all();
  return sum;
}

std::vector<std::optional<std::vector<char>>> HashStore::peek(
    const std::vector<std::string>& keys) {
  std::vector<std::optional<std::vector<char>>> found(keys.size());
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < keys.size(); i++) {
    if (const auto it = values_.find(keys[i]); it != values_.end()) {
      found[i] = it->second;
    }
  }
  return found;
}

bool HashStore::wait_any(const std::vector<std::string>& keys,
                         Deadline deadline) {
  const auto ready = [&] {
    for (const auto& key : keys) {
      if (values_.count(key) != 0) {
        return true;
      }
    }
    return false;
  };
  std::unique_lock lock(mutex_);
  if (deadline.never()) {
    changed_->wait(lock, ready);
    return true;
  }
  return changed_->wait_until(lock, deadline.at(), ready);
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
