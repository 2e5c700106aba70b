// The least that the library needs of a key-value store.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "gloo/config.h"

#define GLOO_SHARED_STORE

GLOO_NAMESPACE_BEGIN

// Shared by all processes of a job. Keys are text, values arbitrary bytes.
// Implementations are thread-safe. Errors are IoException.
class GLOO_API IStore {
 public:
  virtual ~IStore();

  virtual void set(const std::string& key, const std::vector<char>& data) = 0;

  // Blocks until the key exists, at most the store's default timeout.
  virtual std::vector<char> get(const std::string& key) = 0;
  // wait_get: blocks at most `timeout`.
  virtual std::vector<char> wait_get(const std::string& key,
                                     const std::chrono::milliseconds& timeout) {
    wait({key}, timeout);
    return get(key);
  }

  // Blocks until all keys exist; throws IoException at the timeout.
  virtual void wait(const std::vector<std::string>& keys,
                    const std::chrono::milliseconds& timeout) = 0;

  // Whether the four calls below work.
  virtual bool has_v2_support() = 0;

  virtual std::vector<std::vector<char>> multi_get(
      const std::vector<std::string>& keys) = 0;
  virtual void multi_set(const std::vector<std::string>& keys,
                         const std::vector<std::vector<char>>& values) = 0;
  virtual void append(const std::string& key,
                      const std::vector<char>& value) = 0;
  // The value after the addition; a missing key counts as 0.
  virtual int64_t add(const std::string& key, int64_t value) = 0;
};

GLOO_NAMESPACE_END
