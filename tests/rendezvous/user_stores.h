// Stores as callers write them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gloo/rendezvous/hash_store.h"
#include "gloo/rendezvous/store.h"

namespace gloo_test {

// The contents, for several store objects.
struct UserMap {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::vector<char>> values;
  std::atomic<int> sets{0};
  std::atomic<int> calls{0};
  std::atomic<size_t> bytesWritten{0};
};

// Overrides set, get and wait(keys) only: its waits know no timeout.
class PlainStore : public gloo::rendezvous::Store {
 public:
  explicit PlainStore(UserMap& map) : map_(map) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    std::lock_guard lock(map_.mutex);
    map_.values[key] = data;
    map_.sets++;
    map_.calls++;
    map_.bytesWritten += data.size();
    map_.changed.notify_all();
  }

  std::vector<char> get(const std::string& key) override {
    wait({key});
    std::lock_guard lock(map_.mutex);
    map_.calls++;
    return map_.values.at(key);
  }

  void wait(const std::vector<std::string>& keys) override {
    waitFor(keys, std::chrono::seconds(20));
  }

 protected:
  void waitFor(const std::vector<std::string>& keys,
               std::chrono::milliseconds timeout) {
    std::unique_lock lock(map_.mutex);
    map_.calls++;
    const bool all = map_.changed.wait_for(lock, timeout, [&] {
      for (const auto& key : keys) {
        if (map_.values.count(key) == 0) {
          return false;
        }
      }
      return true;
    });
    if (!all) {
      throw std::runtime_error("user store: wait timed out");
    }
  }

  UserMap& map_;
};

// Respects timeouts, too.
class TimedStore : public PlainStore {
 public:
  using PlainStore::PlainStore;
  using PlainStore::wait;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override {
    waitFor(keys, timeout);
  }
};

// Like the TCPStore of PyTorch 1.13: its server remembers a wait that has timed
// out, and answers when the key is there, to whatever is asked next; and a call
// holds a lock as long as it waits.
class UnforgettingStore : public TimedStore {
 public:
  using TimedStore::TimedStore;
  using TimedStore::wait;

  void set(const std::string& key, const std::vector<char>& data) override {
    const std::lock_guard lock(connection_);
    TimedStore::set(key, data);
  }

  std::vector<char> get(const std::string& key) override {
    const std::lock_guard lock(connection_);
    expectNoAnswer();
    return TimedStore::get(key);
  }

  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override {
    const std::lock_guard lock(connection_);
    expectNoAnswer();
    try {
      waitFor(keys, timeout);
    } catch (const std::runtime_error&) {
      remembered_.insert(remembered_.end(), keys.begin(), keys.end());
      throw;
    }
  }

 private:
  void expectNoAnswer() {
    const std::lock_guard lock(map_.mutex);
    for (const auto& key : remembered_) {
      if (map_.values.contains(key)) {
        throw std::runtime_error("user store: an answer that makes no sense");
      }
    }
  }

  std::recursive_mutex connection_;  // get() waits
  std::vector<std::string> remembered_;
};

// Has the v2 calls that a mesh could use, but cannot peek.
class V2Store : public TimedStore {
 public:
  using TimedStore::TimedStore;
  bool has_v2_support() override { return true; }
  std::vector<std::vector<char>> multi_get(
      const std::vector<std::string>& keys) override {
    wait(keys);
    std::lock_guard lock(map_.mutex);
    std::vector<std::vector<char>> found;
    for (const auto& key : keys) {
      found.push_back(map_.values.at(key));
    }
    return found;
  }
};

// `values`, or none at all where there is no surplus.
template <typename Value>
std::vector<Value> miscounted(std::vector<Value> values, size_t surplus) {
  values.resize(surplus == 0 ? 0 : values.size() + surplus);
  return values;
}

// multi_get returns so many values too much, or none.
class MiscountingV2Store : public V2Store {
 public:
  MiscountingV2Store(UserMap& map, size_t surplus)
      : V2Store(map), surplus_(surplus) {}
  std::vector<std::vector<char>> multi_get(
      const std::vector<std::string>& keys) override {
    return miscounted(V2Store::multi_get(keys), surplus_);
  }

 private:
  const size_t surplus_;
};

// peek does, after some that are right.
class MiscountingPeekStore : public gloo::rendezvous::HashStore {
 public:
  MiscountingPeekStore(size_t surplus, int right)
      : surplus_(surplus), right_(right) {}
  std::vector<std::optional<std::vector<char>>> peek(
      const std::vector<std::string>& keys) override {
    auto values = HashStore::peek(keys);
    return right_-- > 0 ? values : miscounted(std::move(values), surplus_);
  }

 private:
  const size_t surplus_;
  std::atomic<int> right_;
};

// Every other wait fails at once, the others soon.
template <typename UserStore>
class AlternatingStore : public UserStore {
 public:
  using UserStore::UserStore;
  using UserStore::wait;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override {
    if (timeout < std::chrono::milliseconds(100)) {
      UserStore::wait(keys, timeout);
    } else if (waits++ % 2 == 0) {
      throw std::runtime_error("user store: too busy to wait");
    } else {
      UserStore::wait(keys, std::chrono::milliseconds(300));
    }
  }

  std::atomic<int> waits{0};
};

// Fails at once.
class BrokenStore : public gloo::rendezvous::Store {
 public:
  void set(const std::string& /*key*/,
           const std::vector<char>& /*data*/) override {}
  std::vector<char> get(const std::string& /*key*/) override {
    throw std::runtime_error("the disk is on fire");
  }
  void wait(const std::vector<std::string>& /*keys*/) override {
    throw std::runtime_error("the disk is on fire");
  }
};

}  // namespace gloo_test
