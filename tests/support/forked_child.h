// Forked children, and what is true in them.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "gloo/common/error.h"
#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace test {

// Whether `body` is true in a forked child. One that waits for what is not
// there is ended, and is not.
inline bool holdsInChild(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    ::_exit(body() ? 0 : 1);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

// The same in each of several children, forked while another thread does
// nothing but `busy`: most of them while it holds the lock that this takes.
inline bool holdsInChildrenWhile(const std::function<void()>& busy,
                                 const std::function<bool()>& body) {
  constexpr int kChildren = 8;
  std::atomic<bool> begun{false};
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) {
      busy();
      begun = true;
    }
  });
  while (!begun) {
    std::this_thread::yield();
  }
  bool holds = true;
  for (int i = 0; i < kChildren && holds; i++) {
    holds = holdsInChild(body);
  }
  stop = true;
  other.join();
  return holds;
}

// Whether the call says that it belongs to the parent.
inline bool isRefused(const std::function<void()>& call) {
  try {
    call();
  } catch (const InvalidOperationException& error) {
    return std::string(error.what()).find("before fork()") != std::string::npos;
  }
  return false;
}

}  // namespace test
GLOO_NAMESPACE_END
