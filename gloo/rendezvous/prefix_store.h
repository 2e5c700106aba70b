// A part of another store: all keys get a prefix.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gloo/rendezvous/store.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// Key k is "<prefix>/k" in the other store. Every call is passed on, so it can
// do exactly what the other store can. Thread-safe if that is.
class GLOO_API PrefixStore : public Store {
 public:
  PrefixStore(const std::string& prefix, std::shared_ptr<Store> store);
  // The store must outlive this object.
  PrefixStore(const std::string& prefix, Store& store);
  ~PrefixStore() override;

  void set(const std::string& key, const std::vector<char>& data) override;
  std::vector<char> get(const std::string& key) override;
  std::vector<char> wait_get(const std::string& key,
                             const std::chrono::milliseconds& timeout) override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;

  bool has_v2_support() override;
  std::vector<std::vector<char>> multi_get(
      const std::vector<std::string>& keys) override;
  void multi_set(const std::vector<std::string>& keys,
                 const std::vector<std::vector<char>>& values) override;
  void append(const std::string& key, const std::vector<char>& value) override;
  int64_t add(const std::string& key, int64_t value) override;

  bool has_peek_support() const override;
  std::vector<std::optional<std::vector<char>>> peek(
      const std::vector<std::string>& keys) override;
  bool wait_any(const std::vector<std::string>& keys,
                Deadline deadline) override;
  bool waits_for_all() const override;
  std::string str() const override;

 protected:
  std::string joinKey(const std::string& key) const;

  const std::string prefix_;
  // Null until a derived class, which gave null, has set it: until then all
  // calls throw InvalidOperationException.
  std::shared_ptr<Store> store_;

 private:
  Store& store() const;
  std::vector<std::string> joinKeys(const std::vector<std::string>& keys) const;
};

}  // namespace rendezvous
GLOO_NAMESPACE_END
