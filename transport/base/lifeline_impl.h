// What is behind Lifelines: its thread, and the state that the thread shares
// with callers, all under one mutex.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gloo/config.h"
#include "transport/base/hello_exchange.h"
#include "transport/base/lifeline.h"
#include "transport/base/lifeline_connection.h"
#include "transport/base/rate_limit.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

class Lifelines::Impl {
 public:
  using Clock = std::chrono::steady_clock;
  using Key = std::pair<uint64_t, uint64_t>;  // world's nonce, own nonce

  Impl();

  void join(Key key, int rank, int size, std::vector<Peer> peers,
            OnCause onCause);
  void joinWorld(Key key, int rank, int size, const std::vector<Peer>& peers,
                 OnCause onCause);
  void flood(Key key, const internal::Cause& cause);
  void suspect(Key key, const internal::Cause& cause, bool gone);
  void leave(Key key);
  bool met(Key key);
  Unmet unmet(Key key);
  void adopt(UniqueFd socket, const Hello& theirs);

 private:
  enum class Channel : uint8_t { kBell = 0, kLine = 1, kPid = 2, kProbe = 3 };

  // The lifeline to one neighbour: greeting, open, or waiting to call again.
  struct Line {
    Key key;
    Peer peer;
    bool caller = false;  // else it waits for the peer's call, and only asks
                          // now and then whether the peer is alive
    std::unique_ptr<HelloExchange> greeting;
    bool greeted = false;  // our hello has left
    std::unique_ptr<LifelineConnection> open;
    bool confirmed = false;  // the peer has spoken: it regards it as open too
    bool bye = false;
    bool leaving = false;  // our world is gone: say bye, wait for the end
    int refusals = 0;      // one after the other
    // When to call again, to give up a greeting, or to stop leaving.
    Clock::time_point timer = Clock::time_point::max();
    UniqueFd pidfd;
    std::unique_ptr<HelloExchange> probe;  // is the process really gone?
    bool probed = false;
    Clock::time_point probeLimit = Clock::time_point::max();

    void close() {
      greeting.reset();
      open.reset();
      pidfd.reset();
      probe.reset();
      probeLimit = Clock::time_point::max();
    }
  };
  // A peer that cannot be reached, until it is known why.
  struct Suspicion {
    internal::Cause cause;
    bool leaves = false;  // no news of its death until then: it has left
    Clock::time_point limit;
  };
  struct Trouble {
    int rank = -1;
    std::string text;
    bool isShort = false;
  };
  struct World {
    int rank = -1;
    int size = 0;
    OnCause onCause;
    std::set<int> unmet;  // neighbours whose line was not yet confirmed
    Trouble trouble;      // of the latest call that failed
    std::optional<internal::Cause> cause;
    std::set<int> left;                   // neighbours that have said bye
    std::map<int, Suspicion> suspicions;  // by rank
    bool calling = false;                 // onCause runs, without the lock
    bool exhausted = false;               // no memory for what happens here
  };
  // An accepted connection to a world that is not there yet.
  struct Orphan {
    UniqueFd socket;
    Hello hello;
    Clock::time_point limit;
  };
  using Lines = std::map<uint64_t, Line>;

  // All REQUIRE the lock.
  void start();  // or throws IoException
  // The same where nobody is told: on a thread of the library's, in the end of
  // a context.
  void tryStart();
  void ring();
  // False, and the line's trouble says why: it is not watched. (What is watched
  // already still is.)
  bool watch(int fd, uint64_t id, Channel channel, bool writing);
  uint64_t addLine(Key key, const Peer& peer);
  void call(uint64_t id, Line& line);
  void takeOrphans(Key key);
  void note(const Line& line, const std::string& why, bool isShort);
  void openLine(uint64_t id, Line& line, UniqueFd socket);
  void takeAdopted(Key key, UniqueFd socket, const Hello& hello);
  void spread(Key key, const internal::Cause& cause, uint64_t except);
  bool isOurs(Key key, const internal::Cause& cause) const;
  void learn(Key key, const internal::Cause& cause, uint64_t from);
  void lost(uint64_t id, Line& line, const std::string& why);
  void onBye(Line& line);
  void judge(Key key, World& world, Clock::time_point now);

  void run();
  bool idle() const;
  void tellNews(std::unique_lock<std::mutex>& lock);
  void callBack(std::unique_lock<std::mutex>& lock, Key key,
                const internal::Cause& cause);
  void exhaust(Key key, const std::exception& e);
  void onEvent(uint64_t data);
  void onGreeting(uint64_t id, Line& line);
  void onGreeted(uint64_t id, Line& line);
  void onCallFailed(uint64_t id, Line& line);
  void callAgain(Line& line, std::chrono::milliseconds pause);
  void onOpen(uint64_t id, Line& line);
  void onLineEnd(uint64_t id, Line& line, const LifelineConnection::News& news);
  void onProcessEnd(uint64_t id, Line& line);
  void onProbe(uint64_t id, Line& line);
  void onTimer(Clock::time_point now);
  void onLineTimer(uint64_t id, Line& line, Clock::time_point now);
  Clock::time_point nextTimer() const;
  // What concerns a line, of which there may be no memory for the news: then
  // its world ends.
  template <typename Call>
  void orExhaust(uint64_t id, const Call& call) {
    try {
      call();
    } catch (const std::exception& e) {
      if (const auto line = lines_.find(id); line != lines_.end()) {
        exhaust(line->second.key, e);
        lines_.erase(line);
      }
    }
  }
  static bool isFrom(const Hello& hello, const Line& line);
  Hello hello(const Line& line, Purpose purpose) const;

  std::mutex mutex_;
  std::condition_variable called_;  // an onCause has returned
  UniqueFd epoll_;
  UniqueFd bell_;
  std::thread::id threadId_;
  bool running_ = false;
  std::map<Key, World> worlds_;
  std::deque<Key> left_;  // the latest, to answer those who call late
  Lines lines_;
  std::vector<Orphan> orphans_;
  std::vector<std::pair<Key, internal::Cause>> news_;  // to be called back
  uint64_t nextId_ = 1;
  RateLimit shortage_;
};

}  // namespace transport::base
GLOO_NAMESPACE_END
