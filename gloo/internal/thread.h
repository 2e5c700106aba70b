// A thread of the library's own.
#pragma once

#include <csignal>
#include <initializer_list>
#include <system_error>
#include <thread>
#include <utility>

#include "gloo/common/error.h"
#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

// While there is one, threads are started that take no signals but those of
// their own faults: a handler of the program's could run while they hold a
// lock, and what the program blocks to wait for would end it.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault :
         {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) {
      sigdelset(&all, fault);
    }
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

// Throws IoException where the system gives none, with what to raise.
template <typename Run>
std::thread startThread(Run&& run) {
  const SignalsBlocked blocked;
  try {
    return std::thread(std::forward<Run>(run));
  } catch (const std::system_error& e) {
    GLOO_THROW_IO_EXCEPTION(
        "cannot start a thread: ", e.what(),
        " (raise the limits of processes, ulimit -u, of address space,"
        " ulimit -v, and this container's of pids)");
  }
}

}  // namespace internal
GLOO_NAMESPACE_END
