#include "gloo/common/utils.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "gloo/common/env.h"
#include "gloo/common/error.h"

GLOO_NAMESPACE_BEGIN

std::string getHostname() {
  // POSIX allows 255 bytes; a longer name may come without terminator.
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) {
    GLOO_THROW_IO_EXCEPTION("gethostname: ", std::strerror(errno));
  }
  return name.data();
}

void setThreadName(const std::string& name) {
  // Longer names are refused (pthread_setname_np(3)).
  ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
}

bool useRankAsSeqNumber() {
  return Environment::fromEnvironment().enableRankAsSequenceNumber;
}

bool isStoreExtendedApiEnabled() {
  return Environment::fromEnvironment().enableStoreV2Api;
}

bool disableConnectionRetries() {
  return Environment::fromEnvironment().disableConnectionRetries;
}

GLOO_NAMESPACE_END
