// A real redis-server of the test's own.
#pragma once

#include <memory>
#include <string>

#include "gloo/rendezvous/redis_store.h"
#include "tests/rendezvous/child_process.h"
#include "tests/rendezvous/temporary_directory.h"

namespace gloo_test {

// Listens on a unix socket and on a free port of 127.0.0.1.
class RedisServer {
 public:
  explicit RedisServer(const std::string& password = "");

  gloo::rendezvous::RedisOptions tcp() const;
  gloo::rendezvous::RedisOptions unixSocket() const;

  void kill();   // without warning; what it held is lost
  void start();  // returns once it answers

 private:
  TemporaryDirectory directory_;
  const std::string password_;
  const int port_;
  std::unique_ptr<ChildProcess> process_;
};

// A port of 127.0.0.1 that was free a moment ago.
int freePort();

}  // namespace gloo_test
