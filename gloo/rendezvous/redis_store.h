// A store in a Redis server.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "gloo/rendezvous/store.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

struct RedisOptions {
  std::string host = "localhost";
  int port = 6379;
  std::string unixSocket;  // not empty: used instead of host and port
  std::string user;        // empty: Redis' default user
  std::string password;    // empty: no authentication
  // How long the constructor tries to reach the server.
  std::chrono::milliseconds connectTimeout = std::chrono::seconds(5);
};

// A lost connection is made again, with growing pauses, until the call's time
// is over; waits survive a restart of the server. A wrong password, or a
// server that is no Redis, is an IoException at once. Waiting ranks sleep on a
// subscription that set() publishes to. append and add are not repeated when
// the connection broke after they were sent. Thread-safe.
class GLOO_API RedisStore : public PeekableStore {
 public:
  explicit RedisStore(const std::string& host, int port = 6379);
  explicit RedisStore(const RedisOptions& options);
  ~RedisStore() override;

  void set(const std::string& key, const std::vector<char>& data) override;
  void multi_set(const std::vector<std::string>& keys,
                 const std::vector<std::vector<char>>& values) override;
  void append(const std::string& key, const std::vector<char>& value) override;
  int64_t add(const std::string& key, int64_t value) override;

  std::vector<std::optional<std::vector<char>>> peek(
      const std::vector<std::string>& keys) override;
  bool wait_any(const std::vector<std::string>& keys,
                Deadline deadline) override;
  std::string str() const override;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace rendezvous
GLOO_NAMESPACE_END
