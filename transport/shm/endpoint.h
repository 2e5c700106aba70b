// How a segment gets from one process to another: over a Unix socket whose name
// is abstract (it belongs to no file) and random, from a process of the same
// user. The connection then stays: its end tells that the peer is gone, and a
// byte on it wakes the peer from its sleep.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "gloo/config.h"
#include "transport/base/socket.h"
#include "transport/shm/segment.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

// A connection to a process, and who that is.
struct Handover {
  base::UniqueFd socket;
  base::UniqueFd memory;
  pid_t pid = 0;  // as this process sees it; 0: it does not
};

// Where peers hand over segments; one for each device. One thread.
class Endpoint {
 public:
  // Throws IoException, also where users cannot be told apart.
  Endpoint();

  const Secret& name() const { return name_; }

  // The segment that was handed over with this token: its sender did so before
  // it sent its answer, so it is there. Throws IoException that says why not.
  Handover take(const Secret& token);

  // What nobody takes would keep its memory, also that of a process that has
  // ended. So what has come is looked at when there is something, and dropped
  // once it is not wanted any more, or has waited for as long as no sender of
  // an answer takes.
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::minutes kKept{10};
  int listener() const { return listener_.get(); }
  void collect(Clock::time_point now = Clock::now()) noexcept;
  // What has this token, or one that ends with this half of one.
  void drop(const Secret& token) noexcept;
  void dropAllOf(uint64_t half) noexcept;
  // When collect() wants to be called at the latest; none: nothing waits.
  std::optional<Clock::time_point> nextCollection() const;

 private:
  struct Waiting {
    Handover handover;
    Secret token{};
    bool complete = false;
    Clock::time_point since = Clock::now();
  };

  void acceptAll();
  void receiveAll();
  static bool receive(Waiting& waiting);

  Secret name_;
  base::UniqueFd listener_;
  std::vector<Waiting> waiting_;
};

// A connection to the endpoint of that name. Throws IoException, also when
// there is no such endpoint on this host, or it is another user's;
// NotNowException when it has too much to do.
Handover dial(const Secret& name);

// Hands `memory` over to it. Throws IoException; NotNowException when too much
// is being handed over.
void handOver(const Handover& to, const Secret& token, int memory);

}  // namespace transport::shm
GLOO_NAMESPACE_END
