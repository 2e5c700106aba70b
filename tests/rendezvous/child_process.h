// Runs a function in a forked process, or a program.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace gloo_test {

// Killed, if it still runs, and reaped at destruction; dies with the thread
// that made it (PR_SET_PDEATHSIG).
class ChildProcess {
 public:
  // The child ends with the function's result, or 99 if it throws.
  explicit ChildProcess(const std::function<int()>& body);
  // argv[0] is looked up in PATH; output is discarded.
  explicit ChildProcess(const std::vector<std::string>& argv);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  int wait();  // exit status, or 128 + signal
  void kill();
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

}  // namespace gloo_test
