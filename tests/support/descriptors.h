// Files that a process may have open.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace test {

// So many more than there are; those below the next free one are all in use.
inline void leaveDescriptors(int more) {
  const int next = ::dup(STDIN_FILENO);
  ::close(next);
  const auto most = static_cast<rlim_t>(next + more);
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = most;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}

}  // namespace test
GLOO_NAMESPACE_END
