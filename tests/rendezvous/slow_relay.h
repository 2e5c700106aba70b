// Stands between the clients of a TCP store and its server, as a network would
// with a server that has much to do.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "rendezvous/socket.h"
#include "rendezvous/tcp_store_wire.h"

namespace gloo_test {

// Passes requests on at once, and each answer, or part of one, after `delay`;
// none once it is silent.
class SlowRelay {
 public:
  SlowRelay(int server, std::chrono::milliseconds delay)
      : server_(server), delay_(delay), thread_([this] { run(); }) {}
  ~SlowRelay() {
    stop_ = true;
    thread_.join();
  }

  int port() const { return gloo::rendezvous::localPort(listener_.get()); }
  void beSilent() { silent_ = true; }
  // Requests to look, of those that came in one piece.
  int peeks() const { return peeks_; }

 private:
  using UniqueFd = gloo::rendezvous::UniqueFd;
  using Both = std::pair<UniqueFd, UniqueFd>;  // client, server

  void run() {
    while (!stop_) {
      std::vector<pollfd> entries{{listener_.get(), POLLIN, 0}};
      for (const Both& both : connections_) {
        entries.push_back({both.first.get(), POLLIN, 0});
        entries.push_back({both.second.get(), POLLIN, 0});
      }
      ::poll(entries.data(), entries.size(), 20);
      size_t i = 1;
      for (auto next = connections_.begin(); next != connections_.end();) {
        const bool asks = entries[i++].revents != 0;
        const bool answers = entries[i++].revents != 0;
        const auto both = next++;
        if ((asks && !pass(both->first, both->second, true)) ||
            (answers && !pass(both->second, both->first, false))) {
          connections_.erase(both);
        }
      }
      if (entries[0].revents != 0) {
        connections_.emplace_back(
            UniqueFd(::accept4(listener_.get(), nullptr, nullptr,
                               SOCK_NONBLOCK | SOCK_CLOEXEC)),
            gloo::rendezvous::connectTcp("127.0.0.1", server_, soon()));
      }
    }
  }

  // false: the connection has ended.
  bool pass(const UniqueFd& from, const UniqueFd& to, bool request) {
    std::array<char, 16384> bytes{};
    try {
      const size_t got = gloo::rendezvous::recvSome(from.get(), bytes, soon());
      if (!request) {
        std::this_thread::sleep_for(delay_);
      } else if (got > 5 && bytes[5] == kPeek) {
        peeks_++;
      }
      if (request || !silent_) {
        gloo::rendezvous::sendAll(to.get(), std::span(bytes).first(got),
                                  soon());
      }
      return true;
    } catch (const gloo::IoException&) {
      return false;
    }
  }

  static gloo::Deadline soon() {
    return gloo::Deadline::after(std::chrono::seconds(20));
  }

  static constexpr char kPeek =
      static_cast<char>(gloo::rendezvous::tcpstore::Op::kPeek);
  const UniqueFd listener_ = gloo::rendezvous::listenTcp("127.0.0.1", 0);
  const int server_;
  const std::chrono::milliseconds delay_;
  std::list<Both> connections_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> silent_{false};
  std::atomic<int> peeks_{0};
  std::thread thread_;
};

}  // namespace gloo_test
