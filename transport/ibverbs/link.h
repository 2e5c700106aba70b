// A push link over one reliable connected queue pair. Frames travel by SEND
// into receives that are posted beforehand; writes, with what the peer is to be
// told, by RDMA WRITE WITH IMMEDIATE; gets by RDMA READ. Credits for the
// peer's receives see to it that one is always there: docs/ibverbs.md.
//
// Everything under the domain's lock; see transport/base/link.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "gloo/config.h"
#include "transport/base/link.h"
#include "transport/ibverbs/endpoint.h"
#include "transport/ibverbs/poller.h"
#include "transport/ibverbs/side_channel.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {

class VerbsLink final : public base::Link {
 public:
  // The endpoint is connected, the side channel's socket watched.
  VerbsLink(VerbsPoller& poller, std::unique_ptr<Endpoint> endpoint,
            SideChannel side, uint32_t peerReceives,
            base::LinkHandler& handler);
  ~VerbsLink() override;

  const base::LinkCaps& caps() const override {
    return endpoint_->shape().caps;
  }
  [[nodiscard]] bool send(const base::FrameHeader& header, const char* payload,
                          void* token) override;
  void hold() override { sends().hold(); }
  [[nodiscard]] bool sendNow(const base::ShortMessage& message,
                             const char* payload) override;
  [[nodiscard]] bool write(const char* local, size_t bytes,
                           const base::Region* region,
                           base::RemoteMemory remote, uint32_t immediate,
                           void* token) override;
  [[nodiscard]] bool writeNow(const char* local, size_t bytes,
                              base::RemoteMemory remote,
                              uint32_t immediate) override;
  [[nodiscard]] bool read(char* local, size_t bytes, const base::Region* region,
                          base::RemoteMemory remote, void* token) override;
  void finish() override;
  void finishWith(const base::FrameHeader& last, const char* payload) override;
  bool flushed() const override { return sends().empty(); }
  bool finished() const override;
  void abandon() override;
  std::string str() const override;
  std::string kind() const override { return "ibverbs"; }

  // ---- For the poller. Each may call the handler, which may destroy this.
  // ----

  // `number`: of the receive, or of the send.
  void onCompletion(const ibv_wc& completion, bool receive, uint32_t number);
  // False: there was nothing new.
  bool onSocket();
  // After completions were taken: reports, returns credits, sends what waits.
  // True if anything moved.
  bool settle();
  // settle() has something to do at once.
  bool hasNews() const;
  bool owns(const ibv_qp* qp) const {
    return !endpoint_->destroyed() && endpoint_->qp() == qp;
  }
  // Of our port, at which the peer sends.
  uint16_t lid() const { return endpoint_->lid(); }
  const Gid& gid() const { return endpoint_->gid(); }
  // The queue pair has failed: now, or soon, unless the peer says why first.
  void fail(const std::string& why);
  void suspect(const std::string& why);
  // The port is up again: of what is on its way something has to arrive within
  // that time, and so on, or the queue pair has missed it. `patience`: of the
  // device for one request, repetitions included.
  void expectLife(std::chrono::milliseconds patience);
  // One of these has thrown: the handler throws nothing, so this is still
  // there.
  void onException(const std::exception& e);

 private:
  using Clock = std::chrono::steady_clock;

  SendQueue& sends() { return endpoint_->sends(); }
  const SendQueue& sends() const { return endpoint_->sends(); }
  // Nothing more leaves.
  bool over() const { return finishing_ || endpoint_->destroyed(); }
  void touch() { poller_.touch(endpoint_->place()); }
  // Of a send that failed at once: no completion will tell.
  void noticeError() {
    if (sends().error() != 0) {
      touch();
      poller_.nudge();
    }
  }
  void expectSide(bool expecting);
  void close();

  class Guard;
  template <typename Call>
  bool notify(const Call& call);

  // link_input.cc
  void onFailure(const ibv_wc& completion, bool receive);
  void onReceive(const ibv_wc& completion, uint32_t slot);
  void onLinkMessage(uint32_t immediate, uint32_t slot);
  void onArrival(uint32_t slot, size_t bytes);
  bool takeCredits(uint16_t credits, size_t payload);
  void onMessage(uint32_t slot, std::span<const char> frame);
  void onHeadless(uint32_t immediate, uint32_t slot, uint32_t bytes);
  void deliver(const base::ShortMessage& message, uint16_t credits,
               uint32_t slot, const char* payload);
  void onFrame(uint32_t slot, std::span<const char> frame);
  void refuse(const base::WireError& error);
  // The buffer may be written again.
  void release(uint32_t slot) {
    if (endpoint_->receives().consumed(slot)) {
      onReceivesPosted();
    }
  }
  void onReceivesPosted();

  // link_settle.cc
  void onLastWord();
  bool report();
  // settle() may have something to do now that a request of ours is complete.
  // What else it waits for is touched meanwhile.
  bool mayGoOn() const {
    return sends().anyDone() || !sends().empty() || byeHeld_ || endHeld_ ||
           endpoint_->receives().creditsDue();
  }
  bool byeIsDue() const;
  bool endIsDue() const;
  bool deliverHeld();
  bool proveLife();
  void extendLife();
  bool judge();
  bool hasReadAll();
  void leaveQuietly();
  void lose(const std::string& text, bool ended);

  VerbsPoller& poller_;
  const std::unique_ptr<Endpoint> endpoint_;
  SideChannel side_;
  const uint32_t peerReceives_;
  base::LinkHandler& handler_;

  bool expecting_ = false;  // news from the side channel, soon
  bool muted_ = false;      // the handler hears nothing any more
  bool finishing_ = false;
  bool peerEnded_ = false;  // nothing follows from the peer
  bool saidLast_ = false;
  bool sideEnded_ = false;  // the peer's end of the side channel is closed
  // What ends the peer's output is told only when everything that we have sent
  // is known to have arrived or not: completions of both directions may
  // overtake each other. Its end, when nothing waits for room any more, either.
  bool byeHeld_ = false;
  base::FrameHeader bye_;
  bool endHeld_ = false;
  // Of what the next message may come without a head; see SendQueue.
  base::ShortMessage lastHead_;
  std::string suspicion_;
  bool onlyFlushed_ = false;  // nothing better is suspected
  Clock::time_point suspectUntil_;
  // Without a proof of life: set while one is awaited, of what was posted.
  std::optional<Clock::time_point> aliveUntil_;
  std::chrono::milliseconds patience_{0};
  std::optional<uint32_t> probe_;
  uint32_t oldestSeen_ = 0;
  // Completions that had been taken when it was time to judge: what came before
  // is read first.
  std::optional<uint64_t> takenBefore_;
};

// Around calls of the handler's: tells whether they have destroyed the link.
class VerbsLink::Guard {
 public:
  explicit Guard(const VerbsLink& link)
      : poller_(link.poller_),
        place_(link.endpoint_->place()),
        tag_(poller_.tagOf(place_, false)) {}
  // Places are given out anew with another tag.
  bool destroyed() const { return poller_.tagOf(place_, false) != tag_; }

 private:
  const VerbsPoller& poller_;
  const uint32_t place_;
  const uint64_t tag_;
};

// Runs a call of the handler's; false when nothing may be told any more.
template <typename Call>
bool VerbsLink::notify(const Call& call) {
  Guard guard(*this);
  call();
  return !guard.destroyed() && !muted_;
}

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
