// Trying again until a deadline, and keeping connections for the next call.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gloo/common/deadline.h"
#include "gloo/common/error.h"
#include "gloo/common/logging.h"
#include "rendezvous/operation_deadline.h"
#include "rendezvous/socket.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// Whoever waits longer for a server is told why, once.
constexpr std::chrono::seconds kSilentTries{3};

// Calls attempt() until it does not throw TransientError. Pauses grow from 5
// to 320 ms. At the deadline, or when the operation is stopped: TransientError
// with `what`, the last error, and `remedy`.
template <typename Attempt>
auto retryUntil(Deadline deadline, const std::string& what,
                const std::string& remedy, Attempt&& attempt)
    -> decltype(attempt()) {
  const auto begin = Deadline::Clock::now();
  std::chrono::milliseconds pause(5);
  bool told = false;
  for (int tries = 1;; tries++) {
    try {
      return attempt();
    } catch (const TransientError& error) {
      const std::chrono::duration<double> spent =
          Deadline::Clock::now() - begin;
      if (deadline.left() <= pause || operationStopped()) {
        throw TransientError(MakeString(what, ": ", error.what(), " (", tries,
                                        " tries in ", spent.count(), " s)",
                                        remedy));
      }
      if (!told && spent >= kSilentTries) {
        told = true;
        const std::chrono::duration<double> left = deadline.left();
        GLOO_WARN(
            what, ": ", error.what(), "; trying again",
            deadline.never() ? "" : MakeString(" for ", left.count(), " s"));
      }
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds(320));
  }
}

// Idle connections of one client, each used by one call at a time. Thread-safe.
template <typename Connection>
class ConnectionPool {
 public:
  // Null if there is none that is still usable.
  std::unique_ptr<Connection> take() {
    return takeIf([](const Connection& connection) {
      return isIdleAndOpen(connection.fd());
    });
  }

  // The same, where those are that `usable` says so of; others are closed.
  template <typename Usable>
  std::unique_ptr<Connection> takeIf(const Usable& usable) {
    for (;;) {
      std::unique_ptr<Connection> connection = takeAny();
      if (connection == nullptr || usable(*connection)) {
        return connection;
      }
    }
  }

  void giveBack(std::unique_ptr<Connection> connection) {
    std::lock_guard lock(mutex_);
    idle_.push_back(std::move(connection));
  }

 private:
  std::unique_ptr<Connection> takeAny() {
    std::lock_guard lock(mutex_);
    if (idle_.empty()) {
      return nullptr;
    }
    std::unique_ptr<Connection> connection = std::move(idle_.back());
    idle_.pop_back();
    return connection;
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_;  // by mutex_
};

}  // namespace rendezvous
GLOO_NAMESPACE_END
