// A store for threads of one process.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "gloo/rendezvous/store.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// Thread-safe.
class GLOO_API HashStore : public PeekableStore {
 public:
  HashStore();
  ~HashStore() override;

  void set(const std::string& key, const std::vector<char>& data) override;
  void multi_set(const std::vector<std::string>& keys,
                 const std::vector<std::vector<char>>& values) override;
  void append(const std::string& key, const std::vector<char>& value) override;
  int64_t add(const std::string& key, int64_t value) override;

  std::vector<std::optional<std::vector<char>>> peek(
      const std::vector<std::string>& keys) override;
  bool wait_any(const std::vector<std::string>& keys,
                Deadline deadline) override;
  std::string str() const override { return "hash store"; }

 private:
  std::mutex mutex_;
  const int process_;  // the one that made it
  std::unique_ptr<std::condition_variable> changed_;
  std::unordered_map<std::string, std::vector<char>> values_;  // by mutex_
};

}  // namespace rendezvous
GLOO_NAMESPACE_END
