// URLs of stores; see openStore().
#pragma once

#include <string>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

struct StoreUrl {
  enum class Kind { kFile, kRedis, kRedisUnix, kTcp };

  Kind kind = Kind::kFile;
  std::string host;
  int port = 0;
  std::string user;
  std::string password;
  std::string path;  // of the directory or the socket
};

// Throws InvalidOperationException: one line that says what is wrong, without
// the password.
StoreUrl parseStoreUrl(const std::string& url);

}  // namespace rendezvous
GLOO_NAMESPACE_END
