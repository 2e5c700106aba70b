#include <sys/stat.h>

#include <cerrno>
#include <map>
#include <mutex>

#include "gloo/common/error.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/rendezvous/store.h"
#include "gloo/rendezvous/tcp_store.h"
#include "rendezvous/store_url.h"
#if GLOO_USE_REDIS
#include "gloo/rendezvous/redis_store.h"
#endif

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

namespace {

// Other ranks may still be reading when rank 0 has all it needs, so the server
// lives as long as its process: a thread that sleeps costs nothing. The port
// that serves it; what was served before is served still.
int serveUntilExit(const std::string& host, int port) {
  static std::mutex mutex;
  static std::multimap<int, std::unique_ptr<TcpStoreServer>> servers;
  std::lock_guard lock(mutex);
  std::unique_ptr<TcpStoreServer> server;
  try {
    server = std::make_unique<TcpStoreServer>(host, port);
  } catch (const IoException&) {
    if (servers.count(port) == 0) {
      throw;
    }
    return port;  // this process has it, under this name or another one
  }
  const int served = server->port();
  servers.emplace(served, std::move(server));
  return served;
}

std::shared_ptr<Store> openTcp(const StoreUrl& url, int rank) {
  if (rank != 0) {
    if (url.port == 0) {
      throw InvalidOperationException(
          "store URL: port 0 lets the system choose, which only rank 0 can "
          "know; name a port");
    }
    return std::make_shared<TcpStore>(url.host, url.port);
  }
  return std::make_shared<TcpStore>(url.host,
                                    serveUntilExit(url.host, url.port));
}

std::shared_ptr<Store> openRedis(const StoreUrl& url) {
#if GLOO_USE_REDIS
  RedisOptions options;
  options.host = url.host;
  options.port = url.port;
  options.unixSocket = url.path;
  options.user = url.user;
  options.password = url.password;
  return std::make_shared<RedisStore>(options);
#else
  static_cast<void>(url);
  throw InvalidOperationException(
      "store URL: this library was built without Redis (USE_REDIS=OFF)");
#endif
}

}  // namespace

std::shared_ptr<Store> openStore(const std::string& url, int rank) {
  const StoreUrl parsed = parseStoreUrl(url);
  switch (parsed.kind) {
    case StoreUrl::Kind::kFile:
      return std::make_shared<FileStore>(parsed.path);
    case StoreUrl::Kind::kTcp:
      return openTcp(parsed, rank);
    default:
      return openRedis(parsed);
  }
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
