#include "transport/ibverbs/link.h"

#include <utility>

#include "gloo/common/error.h"
#include "transport/ibverbs/memory_region.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {
namespace {

uint32_t keyOf(const base::Region* region) {
  return region != nullptr
             ? static_cast<const MemoryRegion*>(region)->localKey()
             : 0;
}

bool isHosts(const base::Region* region) {
  return region == nullptr ||
         static_cast<const MemoryRegion*>(region)->isHosts();
}

}  // namespace

VerbsLink::VerbsLink(VerbsPoller& poller, std::unique_ptr<Endpoint> endpoint,
                     SideChannel side, uint32_t peerReceives,
                     base::LinkHandler& handler)
    : poller_(poller),
      endpoint_(std::move(endpoint)),
      side_(std::move(side)),
      peerReceives_(peerReceives),
      handler_(handler) {
  poller_.attach(endpoint_->place(), *this);
  expectSide(true);
  side_.sayReady();
}

VerbsLink::~VerbsLink() { abandon(); }

std::string VerbsLink::str() const {
  return MakeString("ibverbs ", poller_.adapter().chosen().device, " to ",
                    side_.peerName());
}

bool VerbsLink::send(const base::FrameHeader& header, const char* payload,
                     void* token) {
  if (over()) {
    return false;
  }
  const bool left = sends().send(header, payload, token);
  noticeError();
  return left;
}

bool VerbsLink::sendNow(const base::ShortMessage& message,
                        const char* payload) {
  if (over() || !sends().sendNow(message, payload)) {
    return false;
  }
  noticeError();
  return true;
}

bool VerbsLink::write(const char* local, size_t bytes,
                      const base::Region* region, base::RemoteMemory remote,
                      uint32_t immediate, void* token) {
  if (over()) {
    return false;
  }
  const bool left = sends().write(local, bytes, keyOf(region), isHosts(region),
                                  remote, immediate, token);
  if (sends().holds()) {
    touch();
  }
  noticeError();
  return left;
}

bool VerbsLink::writeNow(const char* local, size_t bytes,
                         base::RemoteMemory remote, uint32_t immediate) {
  if (over() || !sends().writeNow(local, bytes, remote, immediate)) {
    return false;
  }
  noticeError();
  return true;
}

bool VerbsLink::read(char* local, size_t bytes, const base::Region* region,
                     base::RemoteMemory remote, void* token) {
  if (!endpoint_->destroyed()) {
    sends().read(local, bytes, keyOf(region), remote, token);
    noticeError();
  }
  return false;
}

void VerbsLink::finish() {
  finishing_ = true;
  if (!endpoint_->destroyed()) {
    sends().sendEnd();
    noticeError();
  }
}

// Requests that were posted cannot be taken back, nor the peer's rights: the
// queue pair ends, and the last word goes another way.
void VerbsLink::finishWith(const base::FrameHeader& last, const char* payload) {
  muted_ = true;
  finishing_ = true;
  endpoint_->destroy();
  if (side_) {
    saidLast_ = true;
    side_.sayLast(last, payload);
  }
}

bool VerbsLink::finished() const {
  if (endpoint_->destroyed()) {
    return !saidLast_ || sideEnded_;
  }
  return sideEnded_ || (peerEnded_ && sends().endSent());
}

void VerbsLink::abandon() {
  muted_ = true;
  endpoint_->destroy();
  close();
}

void VerbsLink::close() {
  expectSide(false);
  if (side_) {
    poller_.ignore(side_.fd());
    side_.close();
  }
}

void VerbsLink::expectSide(bool expecting) {
  if (expecting_ != expecting) {
    expecting_ = expecting;
    poller_.expectNews(expecting ? 1 : -1);
  }
}

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
