// Moves the frames of all shared-memory links of one device. While anybody
// polls, nothing but memory is looked at; before sleep the links ask their
// peers to be woken by words of that memory, or rung, through sockets that one
// epoll watches.
//
// Everything under the domain's lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "gloo/config.h"
#include "gloo/internal/statistics.h"
#include "transport/base/fork.h"
#include "transport/base/progress.h"
#include "transport/base/socket.h"
#include "transport/shm/endpoint.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

class ShmLink;

class ShmPoller final : public base::Poller {
 public:
  // Throws IoException when the system has no descriptor left.
  ShmPoller();
  ~ShmPoller() override;

  bool poll() override;
  int wakeFd() const override { return epoll_.get(); }
  bool arm() override { return armLinks(nullptr); }
  std::optional<size_t> wordsToArm() const override;
  bool armWords(base::FutexWords& words) override { return armLinks(&words); }
  std::chrono::milliseconds nextTimer() const override;

  // What is handed over there is looked at from now on. Throws IoException.
  void watch(Endpoint& endpoint);

  // ---- For links. ----

  // Polls the link from now on; returns its place. Throws IoException.
  uint32_t add(ShmLink& link, int socket);
  // Looks at the end of the process as well (pidfd_open(2)). False: it cannot.
  [[nodiscard]] bool watchProcess(uint32_t place, int process);
  // Does not look at the socket, or the process, any more.
  void forget(int descriptor);
  void remove(uint32_t place);

  internal::Statistics& statistics() { return statistics_; }
  const internal::Statistics& statistics() const { return statistics_; }

 private:
  bool armLinks(base::FutexWords* words);
  void sweep();
  void disarm();
  bool due();

  std::vector<ShmLink*> links_;  // null: a free place
  Endpoint* endpoint_ = nullptr;
  uint32_t rounds_ = 0;
  std::chrono::steady_clock::time_point nextSweep_{};
  bool armed_ = false;
  bool onWords_ = false;  // instead of the epoll
  bool polledArmed_ = false;
  base::Origin origin_;
  base::UniqueFd epoll_;
  internal::Statistics statistics_;
};

}  // namespace transport::shm
GLOO_NAMESPACE_END
