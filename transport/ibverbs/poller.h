// Moves what all links of one device send and receive: takes completions from
// the queues, and looks now and then at the links' side channels and at the
// device's events.
//
// Under the domain's lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gloo/config.h"
#include "gloo/internal/statistics.h"
#include "transport/base/progress.h"
#include "transport/base/socket.h"
#include "transport/ibverbs/adapter.h"
#include "transport/ibverbs/completion_queues.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {

class VerbsLink;

class VerbsPoller final : public base::Poller {
 public:
  // Throws as Adapter does.
  explicit VerbsPoller(const attr& wanted);

  bool poll() override;
  int wakeFd() const override { return epoll_.get(); }
  bool arm() override;
  std::optional<size_t> wordsToArm() const override {
    return places_.size() == free_.size() ? std::optional<size_t>(0)
                                          : std::nullopt;
  }
  std::chrono::milliseconds nextTimer() const override;

  Adapter& adapter() { return adapter_; }
  const Adapter& adapter() const { return adapter_; }
  CompletionQueues& queues() { return queues_; }
  internal::Statistics& statistics() { return statistics_; }
  internal::Statistics totals() const;

  // ---- For links. ----

  // A place for one queue pair. Throws IoException when there is none left, the
  // device is lost, or its port is down and was so for too long.
  uint32_t add();
  void remove(uint32_t place);
  // What request ids of this place have in their upper half.
  uint64_t tagOf(uint32_t place, bool receives) const {
    return uint64_t{receives} << kReceiveBit | uint64_t{place} << kPlaceShift |
           uint64_t{places_[place].generation} << kGenerationShift;
  }
  // Of the link that is to be attached. Throws IoException.
  void watchSocket(uint32_t place, int socket);
  // From now on the link hears of its completions and its socket.
  void attach(uint32_t place, VerbsLink& link) { places_[place].link = &link; }
  // Before the socket is closed.
  void ignore(int fd);
  // The link settles at the end of the next poll.
  void touch(uint32_t place);
  // Sockets are looked at in every poll while somebody waits for news there.
  void expectNews(int change) {
    expected_ += change;
    lookSoon();
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Parts of a request id; see tagOf().
  static constexpr int kReceiveBit = 63;
  static constexpr int kPlaceShift = 48;
  static constexpr int kGenerationShift = 32;
  static constexpr uint32_t kMaxPlaces = 1u << (kReceiveBit - kPlaceShift);

  struct Place {
    VerbsLink* link = nullptr;
    uint16_t generation = 0;
    bool touched = false;
  };

  void watch(int fd, uint64_t data);
  void take(const ibv_wc& completion);
  void lookSoon();
  bool look();
  bool settle();
  void onDevice(uint64_t id, uint32_t events);
  void giveUp(const std::string& why);
  void requireDevice() const;
  void forEachLink(const std::function<void(VerbsLink&)>& call);

  // poller_events.cc
  void onEvents();
  bool onEvent(const ibv_async_event& event);
  void onPortEvent(ibv_event_type type, const std::string& what);
  std::chrono::milliseconds retryTime() const;
  void checkLids();
  void checkGids();
  void checkPort();
  std::optional<Clock::time_point> portDue() const;
  void failLinks(const std::function<std::string(const VerbsLink&)>& reasonOf);

  Adapter adapter_;
  CompletionQueues queues_;
  base::UniqueFd epoll_;
  std::vector<Place> places_;
  std::vector<uint32_t> free_;
  std::vector<uint32_t> touched_;
  std::vector<uint32_t> settling_;
  internal::Statistics statistics_;
  uint32_t untilLook_ = 1;  // the poll, from now, that looks at descriptors
  int looks_ = 0;           // so many of the next polls do
  int expected_ = 0;
  std::string lost_;  // why no queue pair can be used any more; empty: they can
  bool portDown_ = false;
  // Why there is nothing to wait for until it is up again; empty: there is.
  std::string portLost_;
  Clock::time_point portDownSince_ = Clock::time_point::min();
  // When links end whose GID is missing; none: none's is.
  std::optional<Clock::time_point> gidsDue_;
};

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
