// Events of a VerbsPoller's device, see ibv_get_async_event(3), and what
// becomes of its port.
#include <algorithm>

#include "gloo/common/logging.h"
#include "gloo/common/string.h"
#include "transport/ibverbs/link.h"
#include "transport/ibverbs/poller.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {

using std::chrono::milliseconds;

// There may be many of the port, one for each address that its interface
// loses: what it has is looked at once, behind them.
void VerbsPoller::onEvents() {
  bool changed = false;
  ibv_async_event event{};
  while (api().getAsyncEvent(adapter_.context(), &event) == 0) {
    // First: what it concerns may be destroyed by what follows, and that waits
    // for the acknowledgement. (From here on a pointer is only compared.)
    api().ackAsyncEvent(&event);
    changed |= onEvent(event);
  }
  if (changed) {
    adapter_.refresh();
    checkLids();
    checkGids();
  }
}

// True: the port may have another address now.
bool VerbsPoller::onEvent(const ibv_async_event& event) {
  const std::string what =
      MakeString("RDMA device ", adapter_.chosen().device, " reports ",
                 api().eventTypeStr(event.event_type));
  switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:  // it is in error, and takes no more
    case IBV_EVENT_PATH_MIG_ERR:
      forEachLink([&](VerbsLink& link) {
        if (link.owns(event.element.qp)) {
          link.suspect(what);
        }
      });
      break;
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_DEVICE_FATAL:
      giveUp(what);
      break;
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
      if (event.element.port_num == adapter_.chosen().port) {
        onPortEvent(event.event_type, what);
        return event.event_type != IBV_EVENT_PORT_ERR;
      }
      break;
    default:
      GLOO_DEBUG(what);
  }
  return false;
}

void VerbsPoller::onPortEvent(ibv_event_type type, const std::string& what) {
  GLOO_INFO(what, ", port ", adapter_.chosen().port);
  if (portDown_ && type == IBV_EVENT_PORT_ACTIVE) {
    const milliseconds patience = retryTime();
    forEachLink([&](VerbsLink& link) { link.expectLife(patience); });
  }
  if (type == IBV_EVENT_PORT_ERR) {
    portDown_ = true;
    portDownSince_ = Clock::now();
  }
  if (type == IBV_EVENT_PORT_ACTIVE) {
    portDown_ = false;
    portLost_.clear();
  }
}

// Those for which there is one: a text.
void VerbsPoller::failLinks(
    const std::function<std::string(const VerbsLink&)>& reasonOf) {
  forEachLink([&](VerbsLink& link) {
    if (const std::string why = reasonOf(link); !why.empty()) {
      link.fail(why);
    }
  });
}

// Peers go on sending to the old one, and from there nothing comes any more.
void VerbsPoller::checkLids() {
  failLinks([this](auto& link) { return adapter_.whyNotAt(link.lid()); });
}

// A GID that is gone is no address any more: some adapters have nothing to send
// from, others send as if it were there. One that has only moved is left alone:
// adapters whose queue pairs keep the address (qedr, irdma) go on, and where
// they keep its index (mlx5, rxe), which Linux gives to no other one while they
// exist, the next request fails. The kernel may be about to give back what it
// has taken away, and an interface that is set down takes its addresses along.
void VerbsPoller::checkGids() {
  bool missing = false;
  forEachLink([&](VerbsLink& link) {
    missing = missing || !adapter_.whyNotAt(link.gid()).empty();
  });
  const attr& settings = adapter_.settings();
  if (!missing) {
    gidsDue_.reset();
  } else if (!gidsDue_) {
    gidsDue_ = std::max(Clock::now() + settings.gidLostTime,
                        portDownSince_ + settings.portDownTime);
  }
}

// By when a request has arrived or failed, now that the port is up: a device
// waits up to four times as long as it is told to (the specification's local
// ACK timeout), and longer than very short ones; then the repetition gets
// through. (Soft-RoCE may do neither, ever again, for a queue pair whose port
// was set down while it sent.)
milliseconds VerbsPoller::retryTime() const {
  constexpr milliseconds kLeast{500};
  const attr& settings = adapter_.settings();
  const std::chrono::nanoseconds once(uint64_t{4096} << settings.timeout);
  return std::max(kLeast, std::chrono::ceil<milliseconds>(once) *
                              std::max(6, 2 * (settings.retryCount + 1)));
}

// When checkPort() has something to do.
std::optional<VerbsPoller::Clock::time_point> VerbsPoller::portDue() const {
  if (!portDown_) {
    return gidsDue_;
  }
  const auto down = portDownSince_ + adapter_.settings().portDownTime;
  return gidsDue_ ? std::min(down, *gidsDue_) : down;
}

void VerbsPoller::checkPort() {
  const auto due = portDue();
  if (!due || Clock::now() < *due) {
    return;
  }
  const milliseconds limit = adapter_.settings().portDownTime;
  if (portDown_ && Clock::now() - portDownSince_ >= limit) {
    portDown_ = false;
    portLost_ = MakeString("port ", adapter_.chosen().port, " of RDMA device ",
                           adapter_.chosen().device, " has been down for ",
                           limit.count(), " ms (is its cable plugged in?)");
    forEachLink([this](VerbsLink& link) { link.fail(portLost_); });
  }
  if (gidsDue_ && Clock::now() >= *gidsDue_) {
    gidsDue_.reset();
    adapter_.refresh();
    failLinks([this](auto& link) { return adapter_.whyNotAt(link.gid()); });
  }
}

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
