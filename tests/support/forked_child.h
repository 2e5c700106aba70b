// Forked children, and what is true in them.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "gloo/common/error.h"
#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace test {

// Whether every other thread of this process is asleep.
inline bool othersSleep() {
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "stat");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const size_t name = text.rfind(") ");  // proc(5): then comes the state
    if (name != std::string::npos && text[name + 2] != 'S' &&
        task.path().filename() != std::to_string(::gettid())) {
      return false;
    }
  }
  return true;
}

// Until they are, 10 s at most. A thread that begins may hold a lock of a
// sanitizer's allocator, and a child forked then waits for it for ever.
inline void waitUntilOthersSleep() {
  for (int i = 0; i < 10000 && !othersSleep(); i++) {
    ::usleep(1000);
  }
}

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
