// The thread of the lifelines; what it does at its time is in
// lifeline_timers.cc.
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "gloo/common/logging.h"
#include "gloo/common/string.h"
#include "gloo/common/utils.h"
#include "transport/base/lifeline_impl.h"
#include "transport/base/process.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

using std::chrono::milliseconds;
using Progress = HelloExchange::Progress;

constexpr milliseconds kGreetingLimit{5000};
constexpr milliseconds kCallAgain{250};
// So often in a row: nobody listens there any more.
constexpr int kRefusals = 3;
constexpr milliseconds kRefusedPause{50};
// A process that lives on the same host answers by then.
constexpr milliseconds kProbeLimit{300};
// Looks in a row that leave something to read, before one that judges timers.
constexpr int kMostUnread = 32;

}  // namespace

bool Lifelines::Impl::watch(int fd, uint64_t id, Channel channel,
                            bool writing) {
  epoll_event event{};
  event.events = EPOLLIN | (writing ? uint32_t{EPOLLOUT} : 0);
  event.data.u64 = id << 2 | static_cast<uint64_t>(channel);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0 ||
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) {
    return true;
  }
  const int error = errno;
  const std::string why = errnoText(error) + watchRemedy(error);
  const Line& line = lines_.at(id);
  if (shortage_.allows(Clock::now())) {
    GLOO_WARN("Cannot watch a lifeline to rank ", line.peer.rank, ": ", why);
  }
  note(line, why, true);
  return false;
}

void Lifelines::Impl::note(const Line& line, const std::string& why,
                           bool isShort) {
  if (const auto world = worlds_.find(line.key); world != worlds_.end()) {
    world->second.trouble = {line.peer.rank,
                             MakeString("rank ", line.peer.rank, " at ",
                                        line.peer.endpoint.str(), ": ", why),
                             isShort};
  }
}

Hello Lifelines::Impl::hello(const Line& line, Purpose purpose) const {
  Hello hello;
  hello.purpose = purpose;
  if (const auto world = worlds_.find(line.key); world != worlds_.end()) {
    hello.srcRank = world->second.rank;
    hello.size = world->second.size;
  }
  hello.dstRank = line.peer.rank;
  hello.worldNonce = line.key.first;
  hello.srcNonce = line.key.second;
  hello.dstNonce = line.peer.nonce;
  return hello;
}

void Lifelines::Impl::call(uint64_t id, Line& line) {
  line.greeting = std::make_unique<HelloExchange>();
  line.greeted = false;
  line.greeting->setOutgoing(
      hello(line, line.caller ? Purpose::kLifeline : Purpose::kProbe));
  line.timer = Clock::now() + kGreetingLimit;
  if (line.greeting->connect(line.peer.endpoint) == Progress::kFailed) {
    onCallFailed(id, line);
    return;
  }
  if (!watch(line.greeting->socket(), id, Channel::kLine, true)) {
    callAgain(line, kCallAgain);
  }
}

void Lifelines::Impl::callAgain(Line& line, milliseconds pause) {
  line.close();
  line.timer = Clock::now() + pause;
}

// Nobody has left before all its lines were open, so an endpoint that refuses
// is that of a process that has ended. Every other failure may pass.
void Lifelines::Impl::onCallFailed(uint64_t id, Line& line) {
  const std::string why = line.greeting->why();
  const bool refused = line.greeting->error() == ECONNREFUSED;
  line.refusals = refused ? line.refusals + 1 : 0;
  note(line, why, line.greeting->isShort());
  if (line.leaving) {
    lines_.erase(id);
  } else if (line.refusals >= kRefusals) {
    lost(id, line, why);
    lines_.erase(id);
  } else {
    callAgain(line, refused ? kRefusedPause : kCallAgain);
  }
}

void Lifelines::Impl::onGreeting(uint64_t id, Line& line) {
  Progress progress = Progress::kDone;
  if (!line.greeted) {
    progress = line.greeting->send();
    if (progress == Progress::kDone) {
      line.greeted = true;
      watch(line.greeting->socket(), id, Channel::kLine, false);
    }
  }
  if (progress == Progress::kDone) {
    progress = line.greeting->receive();
  }
  if (progress == Progress::kDone) {
    onGreeted(id, line);
  } else if (progress == Progress::kFailed) {
    onCallFailed(id, line);
  }
}

// Not of another process that has got the port since.
bool Lifelines::Impl::isFrom(const Hello& hello, const Line& line) {
  return hello.verdict == Verdict::kAccepted &&
         hello.srcNonce == line.peer.nonce;
}

void Lifelines::Impl::onGreeted(uint64_t id, Line& line) {
  const std::unique_ptr<HelloExchange> greeting = std::move(line.greeting);
  const bool there = isFrom(greeting->theirs(), line);
  line.refusals = 0;
  if (there && line.caller) {
    openLine(id, line, greeting->takeSocket());
  } else if (there) {
    callAgain(line, kCallAgain);
  } else {
    if (!line.leaving) {
      lost(id, line, "another process has its address");
    }
    lines_.erase(id);
  }
}

void Lifelines::Impl::openLine(uint64_t id, Line& line, UniqueFd socket) {
  line.close();
  try {
    line.open = std::make_unique<LifelineConnection>(std::move(socket));
    // First: who has heard a word takes the end for a death.
    if (!watch(line.open->socket(), id, Channel::kLine, false)) {
      callAgain(line, kCallAgain);
      return;
    }
    line.leaving ? line.open->sayBye() : line.open->confirm();
  } catch (...) {  // else it would stay open, and nobody listen
    callAgain(line, kCallAgain);
    throw;
  }
  if (line.leaving) {
    line.timer = Clock::now() + std::chrono::seconds(2);
  } else {
    line.timer = Clock::time_point::max();
    const World& world = worlds_.at(line.key);
    if (world.cause) {
      line.open->sayCause(*world.cause);
    }
    if (line.peer.pid > 0 && line.peer.pid != ::getpid()) {
      line.pidfd = openProcess(line.peer.pid);
    }
  }
  watch(line.open->socket(), id, Channel::kLine, !line.open->flush());
  // Without, the end of the connection tells, but where a child keeps it.
  if (line.pidfd && !watch(line.pidfd.get(), id, Channel::kPid, false)) {
    line.pidfd.reset();
  }
}

void Lifelines::Impl::onOpen(uint64_t id, Line& line) {
  watch(line.open->socket(), id, Channel::kLine, !line.open->flush());
  const LifelineConnection::News news = line.open->receive();
  if (news.confirmed && !line.confirmed) {
    line.confirmed = true;
    if (const auto world = worlds_.find(line.key); world != worlds_.end()) {
      world->second.unmet.erase(line.peer.rank);
    }
  }
  if (news.bye) {
    onBye(line);
  }
  if (news.cause && !line.leaving && !isOurs(line.key, *news.cause)) {
    learn(line.key, *news.cause, id);
  }
  if (news.ended) {
    onLineEnd(id, line, news);
  }
}

// That a rank has left in silence is found here or not at all: no peer says it
// in our name, and what follows from it relies on who has.
bool Lifelines::Impl::isOurs(Key key, const internal::Cause& cause) const {
  const auto world = worlds_.find(key);
  return world != worlds_.end() && cause.foundBy == world->second.rank &&
         cause.kind == internal::Cause::Kind::kClosed;
}

void Lifelines::Impl::onBye(Line& line) {
  line.bye = true;
  const auto at = worlds_.find(line.key);
  if (at == worlds_.end()) {
    return;
  }
  World& world = at->second;
  world.left.insert(line.peer.rank);
  if (const auto suspicion = world.suspicions.find(line.peer.rank);
      suspicion != world.suspicions.end()) {
    suspicion->second.limit = Clock::now();
  }
}

void Lifelines::Impl::onLineEnd(uint64_t id, Line& line,
                                const LifelineConnection::News& news) {
  if (news.broken) {
    GLOO_WARN("The lifeline to rank ", line.peer.rank, " is lost: ", news.why);
  }
  if (!line.confirmed && !line.leaving) {
    // Given up by a peer that was not ready for it, or the peer has died.
    callAgain(line, kRefusedPause);
    return;
  }
  if (!news.broken && !line.bye && !line.leaving) {
    lost(id, line, news.why);
  }
  lines_.erase(id);
}

void Lifelines::Impl::lost(uint64_t id, Line& line, const std::string& why) {
  internal::Cause cause;
  cause.kind = internal::Cause::Kind::kPeerLost;
  cause.foundBy = worlds_.at(line.key).rank;
  cause.culprit = line.peer.rank;
  cause.text = MakeString("the process of rank ", line.peer.rank,
                          " is gone without having left (", why, ")");
  learn(line.key, cause, id);
}

void Lifelines::Impl::learn(Key key, const internal::Cause& cause,
                            uint64_t from) {
  const auto world = worlds_.find(key);
  if (world != worlds_.end() && !world->second.cause) {
    news_.emplace_back(key, cause);
    world->second.cause = cause;
    spread(key, cause, from);
  }
}

// Either the peer, or whoever had its number after it: ask.
void Lifelines::Impl::onProcessEnd(uint64_t id, Line& line) {
  line.pidfd.reset();
  onOpen(id, line);
  if (!lines_.contains(id) || !line.open || line.bye || line.leaving) {
    return;
  }
  line.probe = std::make_unique<HelloExchange>();
  line.probed = false;
  line.probe->setOutgoing(hello(line, Purpose::kProbe));
  if (line.probe->connect(line.peer.endpoint) == Progress::kFailed ||
      !watch(line.probe->socket(), id, Channel::kProbe, true)) {
    line.probe.reset();
    return;
  }
  line.probeLimit = Clock::now() + kProbeLimit;
}

void Lifelines::Impl::onProbe(uint64_t id, Line& line) {
  Progress progress = Progress::kDone;
  if (!line.probed) {
    progress = line.probe->send();
    if (progress == Progress::kDone) {
      line.probed = true;
      watch(line.probe->socket(), id, Channel::kProbe, false);
    }
  }
  if (progress == Progress::kDone) {
    progress = line.probe->receive();
  }
  if (progress == Progress::kBlocked) {
    return;
  }
  const bool lives =
      progress == Progress::kDone && isFrom(line.probe->theirs(), line);
  line.probe.reset();
  line.probeLimit = Clock::time_point::max();
  if (lives) {
    return;
  }
  onOpen(id, line);  // where it has left meanwhile, it said so before
  if (lines_.contains(id) && line.open && !line.bye && !line.leaving) {
    lost(id, line, MakeString("process ", line.peer.pid, " has ended"));
    lines_.erase(id);
  }
}

void Lifelines::Impl::onEvent(uint64_t data) {
  const uint64_t id = data >> 2;
  const auto channel = static_cast<Channel>(data & 3);
  if (channel == Channel::kBell) {
    uint64_t count;
    [[maybe_unused]] const auto rv = ::read(bell_.get(), &count, sizeof(count));
    return;
  }
  const auto at = lines_.find(id);
  if (at == lines_.end()) {
    return;
  }
  Line& line = at->second;
  if (channel == Channel::kPid && line.pidfd && line.open) {
    onProcessEnd(id, line);
  } else if (channel == Channel::kProbe && line.probe) {
    onProbe(id, line);
  } else if (channel == Channel::kLine && line.greeting) {
    onGreeting(id, line);
  } else if (channel == Channel::kLine && line.open) {
    onOpen(id, line);
  }
}

void Lifelines::Impl::onLineTimer(uint64_t id, Line& line,
                                  Clock::time_point now) {
  if (now >= line.probeLimit) {
    lost(id, line, MakeString("process ", line.peer.pid, " has ended"));
    lines_.erase(id);
  } else if (now >= line.timer) {
    if (line.leaving) {
      lines_.erase(id);
    } else if (line.greeting) {
      note(line, "no answer in time", false);
      callAgain(line, kCallAgain);
    } else {
      call(id, line);
    }
  }
}

bool Lifelines::Impl::idle() const {
  return worlds_.empty() && lines_.empty() && orphans_.empty();
}

void Lifelines::Impl::run() {
  setThreadName("gloo-lifeline");
  std::unique_lock lock(mutex_);
  for (int unread = 0; !idle();) {
    const auto next = nextTimer();
    int timeout = -1;
    if (next != Clock::time_point::max()) {
      timeout = static_cast<int>(
          std::max(milliseconds(0),
                   std::chrono::ceil<milliseconds>(next - Clock::now()))
              .count());
    }
    std::array<epoll_event, 32> events;
    constexpr int kMost = events.size();
    lock.unlock();
    const int n = ::epoll_wait(epoll_.get(), events.data(), kMost, timeout);
    lock.lock();
    for (int i = 0; i < n; i++) {
      orExhaust(events[i].data.u64 >> 2, [&] { onEvent(events[i].data.u64); });
    }
    // What has come in time may be read late, as by a process that was stopped.
    // (EINTR is how it is woken then.)
    if ((n >= 0 && n < kMost) || ++unread == kMostUnread) {
      unread = 0;
      onTimer(Clock::now());
    }
    tellNews(lock);
  }
  running_ = false;
}

}  // namespace transport::base
GLOO_NAMESPACE_END
