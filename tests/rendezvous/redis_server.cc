#include "tests/rendezvous/redis_server.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rendezvous/socket.h"

namespace gloo_test {

int freePort() {
  const auto listener = gloo::rendezvous::listenTcp("127.0.0.1", 0);
  return gloo::rendezvous::localPort(listener.get());
}

RedisServer::RedisServer(const std::string& password)
    : password_(password), port_(freePort()) {
  start();
}

gloo::rendezvous::RedisOptions RedisServer::tcp() const {
  gloo::rendezvous::RedisOptions options;
  options.host = "127.0.0.1";
  options.port = port_;
  options.password = password_;
  return options;
}

gloo::rendezvous::RedisOptions RedisServer::unixSocket() const {
  gloo::rendezvous::RedisOptions options = tcp();
  options.unixSocket = directory_.path() + "/redis.sock";
  return options;
}

void RedisServer::kill() { process_.reset(); }

void RedisServer::start() {
  std::vector<std::string> argv{"redis-server",
                                "--port",
                                std::to_string(port_),
                                "--bind",
                                "127.0.0.1",
                                "--unixsocket",
                                directory_.path() + "/redis.sock",
                                "--save",
                                "",
                                "--appendonly",
                                "no",
                                "--dir",
                                directory_.path()};
  if (!password_.empty()) {
    argv.insert(argv.end(), {"--requirepass", password_});
  }
  process_ = std::make_unique<ChildProcess>(argv);
  auto options = unixSocket();
  options.connectTimeout = std::chrono::seconds(20);
  gloo::rendezvous::RedisStore reachable(options);
}

}  // namespace gloo_test
