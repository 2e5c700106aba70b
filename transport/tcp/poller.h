// Moves the bytes of all links of one device. A link that somebody waits for
// is read without asking first whether anything has come; the others are found
// through epoll, now and then, or always when many are waited for.
//
// Everything under the domain's lock.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "gloo/config.h"
#include "gloo/internal/statistics.h"
#include "transport/base/fork.h"
#include "transport/base/progress.h"
#include "transport/base/socket.h"

GLOO_NAMESPACE_BEGIN
namespace transport::tcp {

class TcpLink;

class TcpPoller final : public base::Poller {
 public:
  // Throws IoException when the system has no descriptor left.
  TcpPoller();
  ~TcpPoller() override;

  bool poll() override;
  int wakeFd() const override { return epoll_.get(); }
  bool arm() override;
  std::optional<size_t> wordsToArm() const override {
    return places_.size() == free_.size() ? std::optional<size_t>(0)
                                          : std::nullopt;
  }
  std::chrono::milliseconds nextTimer() const override;

  // ---- For links. ----

  // Watches the link's socket; returns the link's place here. Throws
  // IoException when the system has no memory for it.
  uint32_t add(TcpLink& link, int socket);
  // Forgets the link: the next thing it does may be to end.
  void remove(uint32_t place);
  // Arriving bytes are not looked at any more; what is queued still leaves.
  void stopReading(uint32_t place);
  void resumeReading(uint32_t place);
  // The link has something to do at each poll, as long as busy() says so.
  void activate(uint32_t place);
  // The link has sent: look later whether that arrives.
  void watch() {
    if (!watching_) {
      watching_ = true;
      nudge();  // there is a timer now
    }
  }

  internal::Statistics& statistics() { return statistics_; }
  const internal::Statistics& statistics() const { return statistics_; }

 private:
  struct Place {
    TcpLink* link = nullptr;
    int socket = -1;
    uint32_t generation = 0;
    bool active = false;
    bool inEpoll = false;
    bool wantsRoom = false;  // epoll reports when more can be sent
  };

  bool pollActive();
  bool sweep();
  void checkStalled();
  void wantRoom(Place& place, bool wanted);
  TcpLink* onlyLink() const;

  std::vector<Place> places_;
  std::vector<uint32_t> free_;
  std::vector<uint32_t> active_;
  uint32_t rounds_ = 0;
  uint32_t lastAdded_ = 0;
  bool sweepNext_ = true;
  bool watching_ = false;
  std::chrono::steady_clock::time_point nextCheck_{};
  base::Origin origin_;
  base::UniqueFd epoll_;
  internal::Statistics statistics_;
};

}  // namespace transport::tcp
GLOO_NAMESPACE_END
