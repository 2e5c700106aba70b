#include "transport/tcp/poller.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

#include "gloo/common/error.h"
#include "transport/tcp/link.h"

GLOO_NAMESPACE_BEGIN
namespace transport::tcp {
namespace {

using std::chrono::milliseconds;

// With more active links than this, one epoll_wait is cheaper than asking each.
constexpr size_t kDirect = 4;
// Rounds of direct reading between two looks at all the others.
constexpr uint32_t kSweepEvery = 8;
constexpr int kEvents = 64;
// How often unacknowledged bytes are looked after.
constexpr milliseconds kCheckEvery{1000};

}  // namespace

TcpPoller::TcpPoller() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) {
    const int error = errno;
    GLOO_THROW_IO_EXCEPTION("epoll_create1: ", base::errnoText(error),
                            base::errnoRemedy(error));
  }
}

TcpPoller::~TcpPoller() = default;

uint32_t TcpPoller::add(TcpLink& link, int socket) {
  if (free_.empty()) {
    const size_t places = places_.size() + 1;
    if (free_.capacity() < places) {
      free_.reserve(2 * places);  // remove() needs no memory
    }
    places_.emplace_back();
    free_.push_back(static_cast<uint32_t>(places - 1));
  }
  const uint32_t index = free_.back();
  places_[index].socket = socket;
  resumeReading(index);
  if (!places_[index].inEpoll) {
    const int error = errno;
    GLOO_THROW_IO_EXCEPTION("epoll_ctl: ", base::errnoText(error),
                            base::watchRemedy(error));
  }
  free_.pop_back();
  places_[index].link = &link;
  lastAdded_ = index;
  sweepNext_ = true;
  return index;
}

void TcpPoller::remove(uint32_t index) {
  stopReading(index);
  Place& place = places_[index];
  const uint32_t generation = place.generation + 1;
  place = Place{};
  place.generation = generation;
  std::replace(active_.begin(), active_.end(), index, UINT32_MAX);
  free_.push_back(index);
}

void TcpPoller::stopReading(uint32_t index) {
  Place& place = places_[index];
  if (place.inEpoll && !origin_.inherited()) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, place.socket, nullptr);
    place.inEpoll = false;
    place.wantsRoom = false;
  }
}

void TcpPoller::resumeReading(uint32_t index) {
  Place& place = places_[index];
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = uint64_t{place.generation} << 32 | index;
  place.inEpoll = place.inEpoll || ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD,
                                               place.socket, &event) == 0;
  place.wantsRoom = false;
}

void TcpPoller::activate(uint32_t index) {
  if (!places_[index].active) {
    active_.push_back(index);
    places_[index].active = true;
  }
}

// The usual case of two ranks needs no epoll at all.
TcpLink* TcpPoller::onlyLink() const {
  return places_.size() - free_.size() == 1 ? places_[lastAdded_].link
                                            : nullptr;
}

bool TcpPoller::poll() {
  if (places_.size() == free_.size()) {
    return false;  // all pairs of an automatic device have better links
  }
  rounds_++;
  // A link that is alone mostly waits for bytes: no list to walk then.
  TcpLink* const alone = onlyLink();
  const bool waits = alone && !alone->hasOutput() && !alone->hasNews();
  bool moved = !waits && pollActive();
  if (TcpLink* only = onlyLink()) {
    moved |= only->receive();
  } else if (active_.empty() || active_.size() > kDirect || sweepNext_ ||
             rounds_ % kSweepEvery == 0) {
    moved |= sweep();
  }
  if (watching_ && (sweepNext_ || rounds_ % (1u << 16) == 0)) {
    checkStalled();
  }
  sweepNext_ = false;
  return moved;
}

// Handlers may add and remove links meanwhile: indices, and holes.
bool TcpPoller::pollActive() {
  const bool direct = active_.size() <= kDirect;
  bool moved = false;
  for (size_t i = 0; i < active_.size(); i++) {
    const uint32_t index = active_[i];
    if (index == UINT32_MAX) {
      continue;
    }
    TcpLink* link = places_[index].link;
    moved |= link->progress();
    if (direct && active_[i] == index && places_[index].link == link &&
        link->expected() && link != onlyLink()) {
      moved |= link->receive();
    }
  }
  std::erase_if(active_, [&](uint32_t index) {
    const bool idle = index == UINT32_MAX || (!places_[index].link->busy() &&
                                              !places_[index].wantsRoom);
    if (idle && index != UINT32_MAX) {
      places_[index].active = false;
    }
    return idle;
  });
  return moved;
}

bool TcpPoller::sweep() {
  std::array<epoll_event, kEvents> events;
  statistics_.systemCalls++;
  const int n = ::epoll_wait(epoll_.get(), events.data(), kEvents, 0);
  bool moved = false;
  for (int i = 0; i < n; i++) {
    const auto index = static_cast<uint32_t>(events[i].data.u64);
    const auto generation = static_cast<uint32_t>(events[i].data.u64 >> 32);
    const auto here = [&] {
      return places_[index].generation == generation && places_[index].inEpoll;
    };
    if (here() && (events[i].events & EPOLLOUT) != 0) {
      moved |= places_[index].link->progress();
      if (here() && !places_[index].link->hasOutput()) {
        wantRoom(places_[index], false);
      }
    }
    if (here() && (events[i].events & ~EPOLLOUT) != 0) {
      moved |= places_[index].link->receive();
    }
  }
  return moved;
}

void TcpPoller::wantRoom(Place& place, bool wanted) {
  if (place.wantsRoom == wanted || !place.inEpoll) {
    return;
  }
  epoll_event event{};
  event.events = EPOLLIN | (wanted ? uint32_t{EPOLLOUT} : 0);
  event.data.u64 = uint64_t{place.generation} << 32 |
                   static_cast<uint32_t>(&place - places_.data());
  statistics_.systemCalls++;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, place.socket, &event);
  place.wantsRoom = wanted;
}

bool TcpPoller::arm() {
  bool again = false;
  for (const uint32_t index : active_) {
    if (index != UINT32_MAX) {
      Place& place = places_[index];
      wantRoom(place, place.link->hasOutput());
      again |= place.link->hasNews();
    }
  }
  sweepNext_ = true;
  return again;
}

milliseconds TcpPoller::nextTimer() const {
  for (const uint32_t index : active_) {
    // Out of epoll: nothing will tell when there is room again.
    if (index != UINT32_MAX && places_[index].link->hasOutput() &&
        !places_[index].inEpoll) {
      return milliseconds(1);
    }
  }
  return watching_ ? kCheckEvery : milliseconds::max();
}

// A host that is gone leaves bytes unacknowledged, and TCP takes a quarter of
// an hour to say so. A stopped process is not taken for that: its host answers.
void TcpPoller::checkStalled() {
  const auto now = std::chrono::steady_clock::now();
  if (now < nextCheck_) {
    return;
  }
  nextCheck_ = now + kCheckEvery;
  bool waiting = false;
  for (size_t i = 0; i < places_.size(); i++) {
    if (places_[i].link != nullptr) {
      waiting |= places_[i].link->checkStalled();
    }
  }
  watching_ = waiting;
}

}  // namespace transport::tcp
GLOO_NAMESPACE_END
