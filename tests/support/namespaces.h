// Namespaces of its own for a process, in which no other one counts.
#pragma once

#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace test {

// Why this machine does not let us do it; empty: it does.
inline std::string whyWithout(int namespaces) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(::unshare(namespaces) == 0 ? 0 : errno);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0
             ? ""
             : std::string("unshare: ") + std::strerror(WEXITSTATUS(status));
}

inline void enter(int namespaces) {
  ASSERT_EQ(::unshare(namespaces), 0) << std::strerror(errno);
}

// A namespace of processes is entered by children only; one that a child has
// entered is gone with it.
inline void inChild(const std::function<void()>& body) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    body();
    std::fflush(nullptr);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// A new network has none that is up; one that is down loses all that is sent.
inline void setLoopback(bool up) {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = static_cast<short>(up ? IFF_UP : 0);
  ASSERT_EQ(::ioctl(socket, SIOCSIFFLAGS, &request), 0);
  ::close(socket);
}

}  // namespace test
GLOO_NAMESPACE_END
