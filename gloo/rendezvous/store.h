// Key-value stores through which the ranks of a job find each other.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gloo/common/deadline.h"
#include "gloo/common/logging.h"
#include "gloo/common/store.h"
#include "gloo/config.h"

// multi_get, multi_set, append and add exist.
#define GLOO_STORE_HAS_STORE_V2 1

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// What callers derive their own stores from: set, get and wait(keys) are all
// that is needed. Thread-safe. A timeout of 0 is none, a negative one an
// InvalidOperationException. Waits should respect their timeout: a
// connectFullMesh cannot end before a wait that it has started.
class GLOO_API Store : public IStore {
 public:
  static constexpr std::chrono::milliseconds kDefaultTimeout =
      std::chrono::seconds(30);

  ~Store() override;

  void set(const std::string& key, const std::vector<char>& data) override = 0;
  std::vector<char> get(const std::string& key) override = 0;

  // Blocks until all keys exist, at most kDefaultTimeout.
  virtual void wait(const std::vector<std::string>& keys) = 0;
  // Calls wait(keys) unless overridden.
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;

  // false: the four calls below throw InvalidOperationException.
  bool has_v2_support() override { return false; }
  std::vector<std::vector<char>> multi_get(
      const std::vector<std::string>& keys) override;
  void multi_set(const std::vector<std::string>& keys,
                 const std::vector<std::vector<char>>& values) override;
  void append(const std::string& key, const std::vector<char>& value) override;
  int64_t add(const std::string& key, int64_t value) override;

  // Optional: look without blocking, and wait for whichever key comes first.
  // false: peek and wait_any throw InvalidOperationException.
  virtual bool has_peek_support() const { return false; }
  // The values of the keys that exist now.
  virtual std::vector<std::optional<std::vector<char>>> peek(
      const std::vector<std::string>& keys);
  // Blocks until at least one key exists: true; at the deadline: false.
  virtual bool wait_any(const std::vector<std::string>& keys,
                        Deadline deadline);

  // Whether the first set() blocks until all ranks have called it. Then only
  // the time of a connectFullMesh begins.
  virtual bool waits_for_all() const { return false; }

  // For people: "file store /tmp/job".
  virtual std::string str() const { return "store"; }
};

// Base of the library's own stores: every blocking call, from peek and
// wait_any.
class GLOO_API PeekableStore : public Store {
 public:
  ~PeekableStore() override;

  std::vector<char> get(const std::string& key) override;
  std::vector<char> wait_get(const std::string& key,
                             const std::chrono::milliseconds& timeout) override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;
  bool has_v2_support() override { return true; }
  // Blocks until all keys exist, at most kDefaultTimeout.
  std::vector<std::vector<char>> multi_get(
      const std::vector<std::string>& keys) override;

  bool has_peek_support() const override { return true; }
  std::vector<std::optional<std::vector<char>>> peek(
      const std::vector<std::string>& keys) override = 0;
  bool wait_any(const std::vector<std::string>& keys,
                Deadline deadline) override = 0;
  std::string str() const override = 0;

 private:
  std::vector<std::vector<char>> gather(const std::vector<std::string>& keys,
                                        std::chrono::milliseconds timeout);
};

// The store that a URL names:
//   file:///directory
//   redis://[[user:]password@]host[:port], redis+unix://[...@]/path/of/socket
//   tcp://host:port   rank 0 serves it until its process ends
// User and password may be percent-encoded. InvalidOperationException, one
// line, when the URL is none of these or the directory not there; IoException
// when the store cannot be reached.
GLOO_API std::shared_ptr<Store> openStore(const std::string& url, int rank);

}  // namespace rendezvous
GLOO_NAMESPACE_END
