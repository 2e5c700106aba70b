#include "transport/ibverbs/poller.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "gloo/common/error.h"
#include "gloo/common/logging.h"
#include "transport/ibverbs/link.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {
namespace {

using std::chrono::milliseconds;

// No attributes: they decide what polling costs, and nothing waits for them for
// longer than it takes to notice. When something is lost, attributes say.
//
// Polls between two looks at descriptors: a look is a system call. A thread
// that goes to sleep, or is woken, looks in any case.
constexpr uint32_t kLookEvery = 512;
constexpr uint32_t kLookEveryExpecting = 4;
constexpr int kEvents = 64;  // of one look; the next one takes the others
// While links wait for what wakes nobody, their reasonTime or a proof of life:
// so much later may a sleeping thread see that it is over.
constexpr milliseconds kLinkCheck{20};

// epoll data other than places.
constexpr uint64_t kChannel = UINT64_MAX;
constexpr uint64_t kAsyncEvents = UINT64_MAX - 1;

// What a link throws ends its context, and nobody else's.
template <typename Call>
void tell(VerbsLink& link, const Call& call) {
  try {
    call(link);
  } catch (const std::exception& e) {
    link.onException(e);
  }
}

}  // namespace

VerbsPoller::VerbsPoller(const attr& wanted)
    : adapter_(wanted),
      queues_(adapter_),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) {
    const int error = errno;
    GLOO_THROW_IO_EXCEPTION("epoll_create1: ", base::errnoText(error),
                            base::errnoRemedy(error));
  }
  watch(adapter_.channel()->fd, kChannel);
  watch(adapter_.context()->async_fd, kAsyncEvents);
}

void VerbsPoller::watch(int fd, uint64_t data) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = data;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    const int error = errno;
    GLOO_THROW_IO_EXCEPTION("epoll_ctl: ", base::errnoText(error),
                            base::errnoRemedy(error));
  }
}

void VerbsPoller::ignore(int fd) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void VerbsPoller::requireDevice() const {
  if (!lost_.empty() || !portLost_.empty()) {
    GLOO_THROW_IO_EXCEPTION(lost_.empty() ? portLost_ : lost_);
  }
}

uint32_t VerbsPoller::add() {
  requireDevice();
  if (free_.empty()) {
    if (places_.size() == kMaxPlaces) {
      GLOO_THROW_IO_EXCEPTION("More than ", kMaxPlaces,
                              " queue pairs of one device");
    }
    // First: if anything throws, nothing has changed. And remove() needs no
    // memory.
    free_.reserve(std::max(places_.capacity(), places_.size() + 1));
    places_.emplace_back();
    free_.push_back(static_cast<uint32_t>(places_.size() - 1));
  }
  const uint32_t place = free_.back();
  free_.pop_back();
  return place;
}

// What still arrives for it is recognised by its generation.
void VerbsPoller::remove(uint32_t place) {
  const auto generation = static_cast<uint16_t>(places_[place].generation + 1);
  const bool touched = places_[place].touched;
  places_[place] = Place{};
  places_[place].generation = generation;
  places_[place].touched = touched;
  free_.push_back(place);
}

void VerbsPoller::watchSocket(uint32_t place, int socket) {
  requireDevice();
  watch(socket, tagOf(place, false));
}

void VerbsPoller::touch(uint32_t place) {
  if (!places_[place].touched) {
    touched_.push_back(place);
    places_[place].touched = true;
  }
}

// Most often there is nothing: then it is short.
bool VerbsPoller::poll() {
  bool moved = false;
  if (--untilLook_ == 0) {
    moved = look();
  }
  const bool taken = queues_.poll([this](const ibv_wc& done) { take(done); });
  if (!queues_.trouble().empty() && lost_.empty()) [[unlikely]] {
    giveUp(MakeString("RDMA device ", adapter_.chosen().device, ": ",
                      queues_.trouble(), " (is the device gone?)"));
    moved = true;
  }
  if (!touched_.empty()) {
    moved |= settle();
  }
  return moved || taken;
}

void VerbsPoller::lookSoon() {
  const uint32_t every = expected_ > 0 ? kLookEveryExpecting : kLookEvery;
  untilLook_ = looks_ > 0 ? 1 : std::clamp(untilLook_, 1u, every);
}

void VerbsPoller::take(const ibv_wc& completion) {
  const uint64_t id = completion.wr_id;
  const auto place =
      static_cast<uint32_t>(id >> kPlaceShift) & (kMaxPlaces - 1);
  if (place >= places_.size() || places_[place].link == nullptr ||
      places_[place].generation !=
          static_cast<uint16_t>(id >> kGenerationShift)) {
    return;  // of a queue pair that is gone
  }
  tell(*places_[place].link, [&](VerbsLink& link) {
    link.onCompletion(completion, id >> kReceiveBit != 0,
                      static_cast<uint32_t>(id));
  });
}

// Sockets, and what the device reports.
bool VerbsPoller::look() {
  looks_ -= looks_ > 0 ? 1 : 0;
  untilLook_ = kLookEvery;
  lookSoon();
  std::array<epoll_event, kEvents> events;
  statistics_.systemCalls++;
  const int n = ::epoll_wait(epoll_.get(), events.data(), kEvents, 0);
  bool moved = false;
  for (int i = 0; i < n; i++) {
    const uint64_t id = events[static_cast<size_t>(i)].data.u64;
    if (id == kAsyncEvents || id == kChannel) {
      onDevice(id, events[static_cast<size_t>(i)].events);
      moved |= !lost_.empty();
    } else {
      const auto place = static_cast<uint32_t>(id >> kPlaceShift);
      if (places_[place].link != nullptr && tagOf(place, false) == id) {
        tell(*places_[place].link, [](VerbsLink& link) { link.onSocket(); });
        moved = true;
      }
    }
  }
  checkPort();
  return moved;
}

// An error of a descriptor stays: the device was removed, or reset under us. It
// may have told more.
void VerbsPoller::onDevice(uint64_t id, uint32_t events) {
  const bool gone = (events & (EPOLLERR | EPOLLHUP)) != 0;
  if (id == kAsyncEvents || gone) {
    onEvents();
  }  // the channel's are arm()'s to take
  if (gone) {
    giveUp(MakeString("RDMA device ", adapter_.chosen().device,
                      " is gone (was it removed, or reset?)"));
  }
}

// For good: what is made with the device from now on would not work either, and
// its descriptors may be readable for ever.
void VerbsPoller::giveUp(const std::string& why) {
  if (lost_.empty()) {
    lost_ = why;
    ignore(adapter_.context()->async_fd);
    ignore(adapter_.channel()->fd);
    forEachLink([&](VerbsLink& link) { link.fail(why); });
  }
}

// Handlers may touch, add and remove links meanwhile.
[[gnu::noinline]] bool VerbsPoller::settle() {
  bool moved = false;
  std::swap(touched_, settling_);
  for (const uint32_t place : settling_) {
    places_[place].touched = false;
    if (VerbsLink* link = places_[place].link) {
      tell(*link, [&moved](VerbsLink& l) { moved |= l.settle(); });
    }
  }
  settling_.clear();
  return moved;
}

bool VerbsPoller::arm() {
  const bool armed = !lost_.empty() || queues_.arm();
  looks_ = 2;  // before falling asleep, and after
  lookSoon();
  return !armed ||
         std::any_of(touched_.begin(), touched_.end(), [this](uint32_t place) {
           return places_[place].link != nullptr &&
                  places_[place].link->hasNews();
         });
}

milliseconds VerbsPoller::nextTimer() const {
  if (!touched_.empty()) {
    return kLinkCheck;
  }
  const auto due = portDue();
  return due ? std::max(std::chrono::ceil<milliseconds>(*due - Clock::now()),
                        milliseconds(1))
             : milliseconds::max();
}

internal::Statistics VerbsPoller::totals() const {
  internal::Statistics total = statistics_;
  total.completions += queues_.completions();
  total.systemCalls += queues_.systemCalls();
  return total;
}

void VerbsPoller::forEachLink(const std::function<void(VerbsLink&)>& call) {
  for (size_t i = 0; i < places_.size(); i++) {  // the call may remove links
    if (places_[i].link != nullptr) {
      tell(*places_[i].link, call);
    }
  }
}

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
