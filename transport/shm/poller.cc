#include "transport/shm/poller.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "gloo/common/error.h"
#include "transport/shm/link.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {
namespace {

using Clock = std::chrono::steady_clock;

// How soon the end of a peer is noticed by who never sleeps.
constexpr std::chrono::milliseconds kSweepEvery{20};
constexpr uint32_t kRoundsPerLook = 64;  // at the clock
constexpr int kEvents = 64;
constexpr uint64_t kEndpoint = UINT64_MAX;        // no link's place
constexpr uint64_t kProcess = uint64_t{1} << 32;  // beside a link's place

}  // namespace

ShmPoller::ShmPoller() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) {
    const int error = errno;
    GLOO_THROW_IO_EXCEPTION("epoll_create1: ", base::errnoText(error),
                            base::errnoRemedy(error));
  }
}

ShmPoller::~ShmPoller() = default;

uint32_t ShmPoller::add(ShmLink& link, int socket) {
  auto free = std::find(links_.begin(), links_.end(), nullptr);
  if (free == links_.end()) {
    free = links_.insert(free, nullptr);
  }
  const auto place = static_cast<uint32_t>(free - links_.begin());
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = place;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket, &event) != 0) {
    const int error = errno;
    GLOO_THROW_IO_EXCEPTION("epoll_ctl: ", base::errnoText(error),
                            base::watchRemedy(error));
  }
  links_[place] = &link;
  armed_ = armed_ && polledArmed_;  // the new one has not been armed
  return place;
}

// Told once of each arrival: what cannot be accepted for now would not let
// anybody sleep.
void ShmPoller::watch(Endpoint& endpoint) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.u64 = kEndpoint;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, endpoint.listener(), &event) !=
      0) {
    const int error = errno;
    GLOO_THROW_IO_EXCEPTION("epoll_ctl: ", base::errnoText(error),
                            base::watchRemedy(error));
  }
  endpoint_ = &endpoint;
}

std::chrono::milliseconds ShmPoller::nextTimer() const {
  const auto next = endpoint_ != nullptr ? endpoint_->nextCollection()
                                         : std::optional<Clock::time_point>();
  return next.has_value()
             ? std::max(std::chrono::ceil<std::chrono::milliseconds>(
                            *next - Clock::now()),
                        std::chrono::milliseconds(1))
             : std::chrono::milliseconds::max();
}

bool ShmPoller::watchProcess(uint32_t place, int process) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kProcess | place;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, process, &event) == 0;
}

void ShmPoller::forget(int descriptor) {
  if (!origin_.inherited()) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
  }
}

void ShmPoller::remove(uint32_t place) { links_[place] = nullptr; }

// Handlers may add and remove links meanwhile.
bool ShmPoller::poll() {
  // The first round after arm() decides whether to sleep: still armed.
  if (armed_ && std::exchange(polledArmed_, true)) {
    disarm();
    if (!onWords_ || due()) {  // a word does not tell of sockets
      sweep();
    }
  } else if (!armed_ && ++rounds_ % kRoundsPerLook == 0 && due()) {
    sweep();
  }
  bool moved = false;
  for (size_t i = 0; i < links_.size(); i++) {
    if (links_[i] != nullptr) {
      moved |= links_[i]->poll();
    }
  }
  return moved;
}

bool ShmPoller::due() {
  const auto now = Clock::now();
  if (now < nextSweep_) {
    return false;
  }
  nextSweep_ = now + kSweepEvery;
  return true;
}

void ShmPoller::sweep() {
  std::array<epoll_event, kEvents> events;
  statistics_.systemCalls++;
  const int n = ::epoll_wait(epoll_.get(), events.data(), kEvents, 0);
  for (int i = 0; i < n; i++) {
    const uint64_t what = events[i].data.u64;
    if (what == kEndpoint) {
      endpoint_->collect();
    } else if (ShmLink* link = links_[static_cast<uint32_t>(what)]) {
      (what & kProcess) != 0 ? link->onProcessEnded() : link->onSocket();
    }
  }
  if (endpoint_ != nullptr) {
    const auto next = endpoint_->nextCollection();
    if (next.has_value() && *next <= Clock::now()) {
      endpoint_->collect();
    }
  }
}

std::optional<size_t> ShmPoller::wordsToArm() const {
  size_t count = 0;
  for (const ShmLink* link : links_) {
    count += link != nullptr ? link->wordsToArm() : 0;
  }
  return count;
}

bool ShmPoller::armLinks(base::FutexWords* words) {
  armed_ = true;
  onWords_ = words != nullptr;
  polledArmed_ = false;
  bool again = false;
  for (ShmLink* link : links_) {
    if (link != nullptr) {
      again |= link->arm(words);
    }
  }
  return again;
}

void ShmPoller::disarm() {
  armed_ = false;
  for (ShmLink* link : links_) {
    if (link != nullptr) {
      link->disarm();
    }
  }
}

}  // namespace transport::shm
GLOO_NAMESPACE_END
