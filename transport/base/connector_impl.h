// What is behind a Connector: its listener, and the calls that are under way.
#pragma once

#include <chrono>
#include <exception>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "gloo/config.h"
#include "transport/base/connector.h"
#include "transport/base/fork.h"
#include "transport/base/hello_exchange.h"
#include "transport/base/rate_limit.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// Everything REQUIRES the domain's lock.
class Connector::Impl {
 public:
  using Clock = std::chrono::steady_clock;
  using milliseconds = std::chrono::milliseconds;

  Impl(ProgressDomain& domain, const SocketAddress& local);

  void connect(uint64_t nonce, const SocketAddress& to, const Hello& mine,
               uint64_t tag, milliseconds limit);
  void cancel(uint64_t nonce, uint64_t tag);
  void wake(uint64_t nonce, uint64_t tag, milliseconds pause);
  void removeParty(uint64_t nonce);
  bool poll();
  bool late() const { return late_; }  // the last poll took long
  bool arm() const;
  bool busy() const { return !calls_.empty() || !timers_.empty(); }
  milliseconds nextTimer() const;

  ProgressDomain& domain;
  std::unordered_map<uint64_t, Party*> parties;
  SocketAddress endpoint;
  UniqueFd epoll;
  Origin origin;

 private:
  // A connection on which hellos are being exchanged.
  struct Call {
    HelloExchange exchange;
    bool outgoing = false;
    bool sending = false;  // else receiving
    uint64_t nonce = 0;    // of our party; 0: not known yet
    uint64_t dstNonce = 0;
    uint64_t tag = 0;
    bool patient = false;             // the answer has no time limit
    int unwatched = 0;                // errno of epoll_ctl
    Verdict answer = Verdict::kNone;  // ours, to a caller
    SocketAddress to;
    Clock::time_point deadline;
  };
  using Calls = std::map<uint64_t, Call>;  // by age
  struct Timer {
    uint64_t nonce = 0;  // of a party
    uint64_t tag = 0;
    Clock::time_point at;
  };

  bool tookLong() const;  // this poll
  void acceptAll();
  int admit(uint64_t id, UniqueFd socket);
  void onAcceptError(int error);
  void listen(bool on);
  bool watch(uint64_t id, Call& call, bool add);
  void advance(uint64_t id);
  void turn(uint64_t id, Call& call);
  Hello answer(Call& call);
  void finish(Calls::iterator at);
  void finishCaller(Call& call);
  static Party::Failure failureOf(const Call& call);
  static std::string whyOf(const Call& call);
  void fail(Calls::iterator at, std::string why);
  void end(Calls::iterator at, Party::Failure failure, const std::string& text);
  void drop(uint64_t id, const std::exception& e);
  // A greeting for which there is no memory ends, and nothing else: who drives
  // has perhaps nothing to do with it.
  template <typename Step>
  void orDrop(uint64_t id, const Step& step) {
    try {
      step();
    } catch (const std::exception& e) {
      drop(id, e);
    }
  }
  void expire();
  void ring(Clock::time_point now);

  UniqueFd listener_;
  bool listening_ = false;
  Clock::time_point listenAgain_{};
  Calls calls_;
  std::vector<Timer> timers_;
  size_t callers_ = 0;
  uint64_t nextId_ = 1;
  Clock::time_point begun_;  // the last poll that had anything to do
  bool late_ = false;
  int unread_ = 0;  // polls in a row that left something; long ones count more
  std::vector<uint64_t> stillborn_;  // calls that could not even start
  RateLimit garbage_;
  RateLimit shortage_;
};

}  // namespace transport::base
GLOO_NAMESPACE_END
