#include "algorithms/simulate/simulate.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "algorithms/simulate/events.h"
#include "algorithms/simulate/links.h"
#include "algorithms/simulate/processors.h"
#include "algorithms/simulate/window.h"
#include "gloo/common/error.h"
#include "gloo/common/string.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::simulate {
namespace {

// kMostSeconds. Far enough from the end of the clock: an event's time is that
// of another and a few costs, none of which is longer.
constexpr Tick kLatest = 1'000'000'000'000'000'000;

constexpr uint64_t kProgressActions = uint64_t{1} << 20;

class World {
 public:
  World(const Scenario& scenario, const Observer& observer)
      : job_(scenario.job),
        observer_(observer),
        links_(scenario),
        processors_(scenario) {
    const auto size = static_cast<size_t>(job_.size);
    ranks_.reserve(size);
    for (int rank = 0; rank < job_.size; rank++) {
      ranks_.emplace_back(Window(job_.algorithm->schedule(job_.setting(rank)),
                                 job_.layouts(rank), job_.optionsOf(rank)));
    }
  }

  Result run() {
    for (int rank = 0; rank < job_.size; rank++) {
      runOn(rank);
    }
    while (!events_.empty()) {
      const Event event = events_.pop();
      // A turn that others have taken is no event.
      if (event.kind != Kind::kTurn || takesTurn(event)) {
        now_ = event.time;
        handle(event);
      }
    }
    return result();
  }

 private:
  using Kind = EventKind;

  struct Message {
    int from = -1;
    int to = -1;
    size_t bytes = 0;
    Place source;
    Links::Departure departure;
  };

  struct Rank {
    explicit Rank(Window w) : window(std::move(w)) {}
    Window window;
    bool busy = false;  // the processor
    size_t sent = 0;
    size_t received = 0;
    uint32_t unexpected = 0;  // messages that have landed before their receive
  };

  Rank& at(int rank) { return ranks_[static_cast<size_t>(rank)]; }

  void push(Tick time, Kind kind, uint64_t number, int rank = 0) {
    if (time > kLatest) {
      throw InvalidOperationException(
          "simulator: this takes more than 1e6 s on such a network");
    }
    Event event;
    event.time = time;
    event.number = static_cast<uint32_t>(number);
    event.rank = static_cast<uint32_t>(rank) & 0x1fffffff;
    event.kind = kind;
    events_.push(event);
  }

  void handle(const Event& event) {
    const auto rank = static_cast<int>(event.rank);
    switch (event.kind) {
      case Kind::kWorked:
        at(rank).busy = false;
        worked(rank, event.number);
        return runOn(rank);
      case Kind::kSent:
        finish(rank, event.number);
        return runOn(rank);
      case Kind::kArrive:
        return arrive(event.number);
      case Kind::kLand:
        return land(event.number);
      case Kind::kTurn:
        return runOn(rank);
    }
  }

  // As the executor: the processor does what comes first in the program of what
  // can be done.
  void runOn(int rank) {
    Rank& r = at(rank);
    while (!r.busy) {
      const auto next = r.window.next();
      const bool runs = processors_.runs(rank);
      if (!next || !runs) {
        return changeTurns(rank, next.has_value(), runs);
      }
      const Tick duration = begin(rank, *next);
      if (duration == 0) {
        worked(rank, *next);
      } else {
        r.busy = true;
        push(now_ + duration, Kind::kWorked, *next, rank);
      }
    }
  }

  // Where ranks share processors: one that is to have one, or to leave it.
  void changeTurns(int rank, bool wants, bool runs) {
    if (wants) {
      announce(processors_.want(rank, now_));
    } else if (runs) {
      processors_.yield(rank, now_);
      announce(processors_.next(rank, now_));
    }
  }

  bool takesTurn(const Event& event) {
    const int rank = static_cast<int>(event.rank);
    const bool takes = processors_.take({rank, event.time, event.number});
    if (takes) {
      announce(processors_.next(rank, event.time));
    }
    return takes;
  }

  void announce(const std::optional<Processors::Turn>& turn) {
    if (turn) {
      push(turn->time, Kind::kTurn, turn->change, turn->rank);
    }
  }

  // What the processor has to do for it.
  Tick begin(int rank, uint64_t number) {
    Window& window = at(rank).window;
    const Action& action = window.action(number);
    if (window.hasArrived(number)) {
      return links_.handling(rank, action.peer, action.bytes, false);
    }
    window.start(number);
    switch (action.kind) {
      case ActionKind::kSend:
        return links_.handling(rank, action.peer, action.bytes, true);
      case ActionKind::kRecv:
        return 0;
      case ActionKind::kReduce:
        return links_.reducing(rank, action.bytes);
      case ActionKind::kCopy:
        return links_.copying(rank, action.bytes);
    }
    return 0;
  }

  void worked(int rank, uint64_t number) {
    const Window& window = at(rank).window;
    const Action& action = window.action(number);
    if (action.kind == ActionKind::kSend) {
      send(rank, number, action);
    } else if (action.kind == ActionKind::kRecv && !window.hasArrived(number)) {
      posted(rank, number, action);
    } else {
      tellLocal(rank, action);
      finish(rank, number);
    }
  }

  void send(int rank, uint64_t number, const Action& action) {
    const Links::Departure departure =
        links_.depart(rank, action.peer, action.bytes, now_);
    const uint64_t message = newMessage();
    messages_[message] = {rank, action.peer, action.bytes, action.source,
                          departure};
    at(rank).sent += action.bytes;
    result_.messages++;
    push(departure.sent, Kind::kSent, number, rank);
    push(departure.arrived, Kind::kArrive, message);
  }

  void arrive(uint64_t message) {
    const Message& m = messages_[message];
    const Tick end = links_.land(m.from, m.to, m.bytes, m.departure);
    if (end > now_) {
      push(end, Kind::kLand, message);
    } else {
      land(message);
    }
  }

  void land(uint64_t message) {
    const Message& m = messages_[message];
    const int to = m.to;
    if (const auto posted = at(to).window.postedFrom(m.from)) {
      match(to, *posted, message);
      runOn(to);
    } else {
      unexpected_[keyOf(m.from, to)].push_back(message);
      at(to).unexpected++;
    }
  }

  void posted(int rank, uint64_t number, const Action& action) {
    Rank& r = at(rank);
    if (r.unexpected == 0) {
      return;
    }
    const auto found = unexpected_.find(keyOf(action.peer, rank));
    if (found == unexpected_.end()) {
      return;
    }
    const uint64_t message = found->second.front();
    found->second.pop_front();
    if (found->second.empty()) {
      unexpected_.erase(found);
    }
    r.unexpected--;
    match(rank, number, message);
  }

  void match(int rank, uint64_t number, uint64_t message) {
    Rank& r = at(rank);
    const Message& m = messages_[message];
    const Action& action = r.window.action(number);
    if (action.bytes != m.bytes) {
      throw InvalidOperationException(
          MakeString("simulator: rank ", m.from, " sends ", m.bytes,
                     " bytes, but rank ", rank, " expects ", action.bytes));
    }
    r.window.arrived(number);
    r.received += m.bytes;
    if (observer_.deed) {
      observer_.deed({Deed::kMessage, m.from, rank,
                      secondsOf(m.departure.begin), secondsOf(now_), m.bytes,
                      m.source, action.target});
    }
    freeMessages_.push_back(message);
  }

  void tellLocal(int rank, const Action& action) {
    if (observer_.deed && action.kind != ActionKind::kRecv) {
      const bool reduces = action.kind == ActionKind::kReduce;
      const Tick duration = reduces ? links_.reducing(rank, action.bytes)
                                    : links_.copying(rank, action.bytes);
      observer_.deed({reduces ? Deed::kReduce : Deed::kCopy, rank, -1,
                      secondsOf(now_ - duration), secondsOf(now_), action.bytes,
                      action.source, action.target});
    }
  }

  void finish(int rank, uint64_t number) {
    at(rank).window.finish(number);
    result_.actions++;
    if (result_.actions % kProgressActions == 0 && observer_.progress) {
      observer_.progress(result_.actions);
    }
  }

  Result result() {
    for (int rank = 0; rank < job_.size; rank++) {
      const Rank& r = at(rank);
      if (!r.window.finished()) {
        throw InvalidOperationException(
            MakeString("simulator: ", job_.str(), ": rank ", rank,
                       " never ends: action ", r.window.head()));
      }
      result_.totalBytes += r.sent;
      result_.receivedBytes += r.received;
      result_.busiestBytes =
          std::max({result_.busiestBytes, r.sent, r.received});
    }
    result_.seconds = secondsOf(now_);
    return result_;
  }

  uint64_t newMessage() {
    if (freeMessages_.empty()) {
      messages_.emplace_back();
      return messages_.size() - 1;
    }
    const uint64_t message = freeMessages_.back();
    freeMessages_.pop_back();
    return message;
  }

  static uint64_t keyOf(int from, int to) {
    return (static_cast<uint64_t>(from) << 32) | static_cast<uint32_t>(to);
  }

  const verify::Job& job_;
  const Observer& observer_;
  Links links_;
  Processors processors_;
  std::vector<Rank> ranks_;
  Events events_;
  Tick now_ = 0;
  std::vector<Message> messages_;  // those on the way, and free places
  std::vector<uint64_t> freeMessages_;
  std::unordered_map<uint64_t, std::deque<uint64_t>> unexpected_;
  Result result_;
};

void check(const Scenario& scenario) {
  const verify::Job& job = scenario.job;
  if (job.algorithm == nullptr || job.size < 1 || job.root < 0 ||
      job.root >= job.size || job.radix < 2) {
    throw InvalidOperationException(
        "simulator: no algorithm, fewer than one rank, a root that is no rank, "
        "or a radix below 2");
  }
  if (!job.algorithm->offers(job.setting(0))) {
    throw InvalidOperationException(MakeString(
        nameOf(job.algorithm->collective), " by ", job.algorithm->name,
        " does not work for ", job.size, " ranks"));
  }
}

}  // namespace

Result simulate(const Scenario& scenario, const Observer& observer) {
  check(scenario);
  return World(scenario, observer).run();
}

Scenario unitScenario(const AlgorithmInfo& algorithm, int size, int root,
                      int radix, const HostMap* hosts) {
  Scenario scenario;
  verify::Job& job = scenario.job;
  job.algorithm = &algorithm;
  job.size = size;
  job.root = root;
  job.radix = radix;
  job.hosts = hosts;
  job.count = algorithm.blocks != nullptr
                  ? static_cast<size_t>(algorithm.blocks(job.setting(0)))
                  : 1;
  scenario.network.between.latency = 1;
  scenario.network.between.gap = 1;
  return scenario;
}

int roundsOf(const AlgorithmInfo& algorithm, int size, int root, int radix,
             const HostMap* hosts) {
  return static_cast<int>(std::lround(
      simulate(unitScenario(algorithm, size, root, radix, hosts)).seconds));
}

}  // namespace algorithms::simulate
GLOO_NAMESPACE_END
