#include "transport/base/connector.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

#include "gloo/common/error.h"
#include "gloo/common/logging.h"
#include "transport/base/connector_impl.h"
#include "transport/base/lifeline.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Progress = HelloExchange::Progress;

constexpr int kListenBacklog = 4096;  // cut to net.core.somaxconn
// Accepted connections whose hello is not complete: the oldest gives way.
constexpr size_t kMaxCallers = 256;
// A caller that has not said who it is by then is not one of ours.
constexpr milliseconds kCallerLimit{5000};
// After accept() failed for want of a descriptor or of memory.
constexpr milliseconds kAcceptPause{100};
constexpr uint64_t kListener = 0;
// A greeting may take long: the kernel looks for a way to the caller, for up to
// a second. Who then waits for the lock, or for a deadline, comes first.
constexpr milliseconds kTurn{50};
// Turns in a row that leave something to read, before one that judges
// deadlines; of those that take long, two.
constexpr int kMostUnread = 20;

}  // namespace

Connector::Impl::Impl(ProgressDomain& domain, const SocketAddress& local)
    : domain(domain),
      epoll(::epoll_create1(EPOLL_CLOEXEC)),
      listener_(listenOn(local, kListenBacklog)) {
  endpoint = localAddress(listener_.get());
  epoll_event event{};
  event.data.u64 = kListener;
  if (!epoll ||
      ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, listener_.get(), &event) != 0) {
    const int error = errno;
    GLOO_THROW_IO_EXCEPTION("epoll: ", errnoText(error), errnoRemedy(error));
  }
  listen(true);
}

void Connector::Impl::listen(bool on) {
  listening_ = on;
  epoll_event event{};
  event.events = on ? uint32_t{EPOLLIN} : 0;
  event.data.u64 = kListener;
  ::epoll_ctl(epoll.get(), EPOLL_CTL_MOD, listener_.get(), &event);
}

bool Connector::Impl::watch(uint64_t id, Call& call, bool add) {
  epoll_event event{};
  event.events = call.sending ? EPOLLOUT : EPOLLIN;
  event.data.u64 = id;
  const int rv = ::epoll_ctl(epoll.get(), add ? EPOLL_CTL_ADD : EPOLL_CTL_MOD,
                             call.exchange.socket(), &event);
  call.unwatched = rv == 0 ? 0 : errno;
  return rv == 0;
}

void Connector::Impl::connect(uint64_t nonce, const SocketAddress& to,
                              const Hello& mine, uint64_t tag,
                              milliseconds limit) {
  const uint64_t id = nextId_++;
  Call& call = calls_[id];
  call.outgoing = true;
  call.sending = true;
  call.nonce = nonce;
  call.dstNonce = mine.dstNonce;
  call.tag = tag;
  call.patient = mine.purpose == Purpose::kPair;
  call.to = to;
  call.deadline = Clock::now() + std::min(limit, milliseconds(3'600'000));
  call.exchange.setOutgoing(mine);
  if (call.exchange.connect(to) == Progress::kFailed ||
      !watch(id, call, true)) {
    stillborn_.push_back(id);
  }
  domain.changed();
}

void Connector::Impl::cancel(uint64_t nonce, uint64_t tag) {
  std::erase_if(calls_, [&](const auto& entry) {
    const Call& call = entry.second;
    return call.outgoing && call.nonce == nonce && call.tag == tag;
  });
}

void Connector::Impl::removeParty(uint64_t nonce) {
  parties.erase(nonce);
  std::erase_if(timers_,
                [&](const Timer& timer) { return timer.nonce == nonce; });
  std::erase_if(calls_, [&](const auto& entry) {
    const bool theirs = entry.second.nonce == nonce;
    callers_ -= theirs && !entry.second.outgoing ? 1 : 0;
    return theirs;
  });
}

bool Connector::Impl::poll() {
  std::array<epoll_event, 64> events;
  constexpr int kMost = events.size();
  const int n = ::epoll_wait(epoll.get(), events.data(), kMost, 0);
  if (n <= 0 && stillborn_.empty() && !busy() && listening_) {
    late_ = false;
    unread_ = 0;
    return false;  // most often: without a look at the clock
  }
  begun_ = Clock::now();
  const std::vector<uint64_t> stillborn = std::exchange(stillborn_, {});
  for (const uint64_t id : stillborn) {
    if (const auto at = calls_.find(id); at != calls_.end()) {
      orDrop(id, [&] { fail(at, whyOf(at->second)); });
    }
  }
  int i = 0;
  for (; i < n && !tookLong(); i++) {  // the rest is reported again
    if (events[i].data.u64 == kListener) {
      acceptAll();
    } else {
      const uint64_t id = events[i].data.u64;
      orDrop(id, [&] { advance(id); });
    }
  }
  // What has come in time may be read late, as by a process that was stopped.
  const bool slow = tookLong();
  const bool all = i >= n && n < kMost && !slow;
  unread_ += slow ? kMostUnread / 2 : 1;
  if (all || unread_ >= kMostUnread) {
    unread_ = 0;
    expire();
  }
  late_ = tookLong();
  return n > 0 || !stillborn.empty();
}

bool Connector::Impl::tookLong() const { return Clock::now() - begun_ > kTurn; }

void Connector::Impl::acceptAll() {
  while (!tookLong()) {
    UniqueFd socket;
    const int error = acceptFrom(listener_.get(), &socket);
    if (error != 0) {
      onAcceptError(error);
      return;
    }
    const uint64_t id = nextId_++;
    if (const int shortage = admit(id, std::move(socket)); shortage != 0) {
      onAcceptError(shortage);
      return;
    }
    orDrop(id, [&] { advance(id); });  // the hello is usually there already
  }
}

// 0, or errno: then the connection is closed, and the caller tries again.
int Connector::Impl::admit(uint64_t id, UniqueFd socket) try {
  if (callers_ >= kMaxCallers) {
    const auto oldest =
        std::find_if(calls_.begin(), calls_.end(),
                     [](const auto& entry) { return !entry.second.outgoing; });
    fail(oldest, "too many callers that do not greet");
  }
  Call& call = calls_[id];
  call.exchange = HelloExchange(std::move(socket));
  call.deadline = Clock::now() + kCallerLimit;
  if (!watch(id, call, true)) {
    const int error = call.unwatched;
    calls_.erase(id);
    return error;
  }
  callers_++;
  return 0;
} catch (const std::bad_alloc&) {
  return ENOMEM;
}

void Connector::Impl::onAcceptError(int error) {
  if (error != EMFILE && error != ENFILE && error != ENOBUFS &&
      error != ENOMEM && error != ENOSPC) {
    return;  // EAGAIN, or the caller has gone again
  }
  listen(false);
  listenAgain_ = Clock::now() + kAcceptPause;
  if (shortage_.allows(Clock::now())) {
    GLOO_WARN("Cannot accept connections on ", endpoint.str(), ": ",
              errnoText(error), watchRemedy(error));
  }
}

void Connector::Impl::advance(uint64_t id) {
  for (;;) {
    const auto at = calls_.find(id);
    if (at == calls_.end()) {
      return;
    }
    Call& call = at->second;
    const Progress progress =
        call.sending ? call.exchange.send() : call.exchange.receive();
    if (progress == Progress::kBlocked) {
      return;
    }
    if (progress == Progress::kFailed) {
      fail(at, call.exchange.why());
      return;
    }
    if (call.sending != call.outgoing) {  // the second half is done
      finish(at);
      return;
    }
    turn(id, call);
  }
}

// The first hello is through; now the other direction.
void Connector::Impl::turn(uint64_t id, Call& call) {
  if (!call.outgoing) {
    const Hello mine = answer(call);
    if (!calls_.contains(id)) {
      return;  // the party was removed meanwhile
    }
    call.answer = mine.verdict;
    call.exchange.setOutgoing(mine);
  } else if (call.patient) {
    call.deadline = Clock::time_point::max();
  }
  call.sending = !call.sending;
  if (!watch(id, call, false)) {
    fail(calls_.find(id), whyOf(call));
  }
}

Hello Connector::Impl::answer(Call& call) {
  const Hello& theirs = call.exchange.theirs();
  const auto party = parties.find(theirs.dstNonce);
  if (theirs.verdict == Verdict::kNone && party != parties.end()) {
    call.nonce = theirs.dstNonce;
    return party->second->onHello(theirs);
  }
  Hello mine;
  mine.purpose = theirs.purpose;
  mine.verdict = Verdict::kUnknown;
  mine.dstNonce = theirs.srcNonce;
  mine.text = "another process lives there now: the address is stale";
  return mine;
}

// Both hellos are through.
void Connector::Impl::finish(Calls::iterator at) {
  if (!at->second.outgoing) {
    Call call = std::move(at->second);
    callers_--;
    calls_.erase(at);
    finishCaller(call);
    return;
  }
  const Hello& theirs = at->second.exchange.theirs();
  if (theirs.verdict != Verdict::kAccepted) {
    fail(at, theirs.text);
    return;
  }
  if (theirs.srcNonce != at->second.dstNonce) {
    fail(at, "the answer comes from another process");
    return;
  }
  Call call = std::move(at->second);
  calls_.erase(at);
  if (const auto party = parties.find(call.nonce); party != parties.end()) {
    ::epoll_ctl(epoll.get(), EPOLL_CTL_DEL, call.exchange.socket(), nullptr);
    UniqueFd socket = call.exchange.takeSocket();
    party->second->onConnected(call.exchange.theirs(), std::move(socket),
                               call.tag);
  }
}

void Connector::Impl::finishCaller(Call& call) {
  const Hello& theirs = call.exchange.theirs();
  ::epoll_ctl(epoll.get(), EPOLL_CTL_DEL, call.exchange.socket(), nullptr);
  if (call.answer != Verdict::kAccepted) {
    return;
  }
  if (theirs.purpose == Purpose::kLifeline) {
    try {
      Lifelines::instance().adopt(call.exchange.takeSocket(), theirs);
    } catch (const std::exception& e) {  // the caller tries again
      GLOO_WARN("A lifeline of rank ", theirs.srcRank,
                " is refused: ", e.what());
    }
  } else if (theirs.purpose == Purpose::kPair) {
    if (const auto party = parties.find(call.nonce); party != parties.end()) {
      party->second->onConnected(theirs, call.exchange.takeSocket(), 0);
    }
  }
}

bool Connector::Impl::arm() const { return !stillborn_.empty(); }

Connector::Connector(ProgressDomain& domain, const SocketAddress& local)
    : impl_(std::make_unique<Impl>(domain, local)) {
  domain.add(*this);
}

Connector::~Connector() {
  if (!impl_->origin.inherited()) {
    impl_->domain.remove(*this);
  }
}

const SocketAddress& Connector::endpoint() const { return impl_->endpoint; }

void Connector::addParty(uint64_t nonce, Party& party) {
  impl_->parties[nonce] = &party;
}

void Connector::cancel(uint64_t nonce, uint64_t tag) {
  impl_->cancel(nonce, tag);
}

void Connector::removeParty(uint64_t nonce) { impl_->removeParty(nonce); }

void Connector::connect(uint64_t nonce, const SocketAddress& to,
                        const Hello& mine, uint64_t tag, milliseconds limit) {
  impl_->connect(nonce, to, mine, tag, limit);
  rest(false);
}

void Connector::wake(uint64_t nonce, uint64_t tag, milliseconds pause) {
  impl_->wake(nonce, tag, pause);
  rest(false);
}

bool Connector::poll() {
  const bool moved = impl_->poll();
  if (impl_->late()) {
    lookAtDeadlines();
  }
  rest(!impl_->busy());
  return moved;
}

// The last round before a sleep leaves nobody out.
bool Connector::arm() {
  rest(false);
  return impl_->arm();
}

int Connector::wakeFd() const { return impl_->epoll.get(); }
milliseconds Connector::nextTimer() const { return impl_->nextTimer(); }

}  // namespace transport::base
GLOO_NAMESPACE_END
