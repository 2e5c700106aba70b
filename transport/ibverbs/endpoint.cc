#include "transport/ibverbs/endpoint.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "gloo/common/error.h"
#include "transport/base/socket.h"
#include "transport/ibverbs/poller.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {

using base::FrameHeader;

namespace {

// What each peer has however many there are, or the protocol would stop, or be
// no faster than one message at a time.
constexpr size_t kMinCredit = size_t{1} << 10;
constexpr uint32_t kMinReceives = 8;
// What a short message counts of the peer's credit: about its bookkeeping. Both
// ends have to agree, so it is no attribute.
constexpr size_t kQuantum = 256;
// A control frame always fits.
constexpr size_t kMinSlot = FrameHeader::kBytes + base::kMaxControlPayload;

size_t slotBytesOf(size_t eagerBytes) {
  return std::max(kMinSlot, (FrameHeader::kBytes + eagerBytes + 63) / 64 * 64);
}

}  // namespace

// The memory is shared within a context, not by all of a device: what a link
// has then depends on nothing that differs between its two ends, nor on which
// contexts were made before, and a context knows it before it has a link.
Shape shapeFor(const Adapter& adapter, int peers) {
  const attr& settings = adapter.settings();
  const size_t share =
      settings.eagerMemoryBytes / static_cast<size_t>(std::max(peers, 1));
  Shape shape;
  shape.credits = static_cast<uint32_t>(
      std::clamp<size_t>(share / 2 / kMinSlot, kMinReceives,
                         static_cast<size_t>(settings.receives)));
  // Half of the share for receives, a quarter for sends.
  size_t eager = std::min(settings.eagerBytes, share / 2 / shape.credits);
  eager = std::min(eager, base::kMaxDataPayload);
  // With its head it is one message of the device's.
  const auto longest = static_cast<size_t>(adapter.maxMessage());
  eager = std::min(eager, longest - std::min(longest, FrameHeader::kBytes));
  eager = eager / 64 * 64;
  shape.sendSlots = std::max(shape.credits / 2, 4u);
  const int most = adapter.device().max_qp_wr;
  shape.sendDepth = static_cast<uint32_t>(std::min(settings.sendQueue, most));
  shape.credits = std::min(shape.credits,
                           static_cast<uint32_t>(most) - ReceiveRing::kReserve);
  shape.slotBytes = slotBytesOf(eager);
  shape.caps.remoteWrite = true;
  shape.caps.remoteRead = true;
  shape.caps.needsRegions = true;
  shape.caps.callBytes = settings.callBytes;
  shape.caps.reportsDeath = true;
  shape.caps.creditBytes = std::clamp(share, kMinCredit, settings.creditBytes);
  shape.caps.eagerBytes = std::min(eager, shape.caps.creditBytes / 4);
  shape.caps.creditQuantum = kQuantum;
  shape.caps.maxFrameBytes = adapter.maxMessage();
  return shape;
}

Pages::Pages(size_t bytes) : bytes_(bytes) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) {
    const int error = errno;
    GLOO_THROW_IO_EXCEPTION("No memory for ", bytes,
                            " bytes of buffers: ", base::errnoText(error));
  }
  memory_ = static_cast<char*>(memory);
}

Pages::~Pages() { ::munmap(memory_, bytes_); }

Place::Place(VerbsPoller& poller) : poller_(poller), number_(poller.add()) {}

Place::~Place() { poller_.remove(number_); }

Endpoint::Endpoint(VerbsPoller& poller, const Shape& shape)
    : place_(poller),
      shape_(shape),
      pages_((shape.credits + ReceiveRing::kReserve + shape.sendSlots) *
             shape.slotBytes),
      region_(poller.adapter().pd(), pages_.get(), pages_.bytes(),
              base::Rights::kLocalWrite),
      qp_(poller.adapter(), poller.queues(),
          {static_cast<int>(shape.sendDepth),
           static_cast<int>(shape.credits + ReceiveRing::kReserve)}),
      receives_(
          qp_.get(),
          {pages_.get(), region_.localKey(), shape.slotBytes, shape.credits},
          poller.tagOf(place(), true), poller.statistics()),
      sends_(qp_.get(),
             {pages_.get() +
                  (shape.credits + ReceiveRing::kReserve) * shape.slotBytes,
              region_.localKey(), shape.slotBytes, shape.sendSlots,
              shape.sendDepth, qp_.inlineBytes()},
             poller.tagOf(place(), false), receives_, poller.statistics()) {
  const size_t inlined = qp_.inlineBytes();
  shape_.caps.copiedBytes = inlined;
  shape_.caps.smallBytes =
      std::min(inlined - std::min(inlined, base::kShortHeadBytes),
               shape_.caps.eagerBytes);
  poller.statistics().registrations++;
  if (const int error = receives_.start(); error != 0) {
    GLOO_THROW_IO_EXCEPTION("Cannot post receives: ", base::errnoText(error));
  }
}

QpAddress Endpoint::address() const {
  QpAddress address = qp_.address();
  address.receives = shape_.credits;
  address.eagerBytes = static_cast<uint32_t>(shape_.caps.eagerBytes);
  address.creditBytes = shape_.caps.creditBytes;
  address.maxMessage = shape_.caps.maxFrameBytes;
  return address;
}

void Endpoint::connect(const QpAddress& peer) {
  qp_.connect(peer);
  base::LinkCaps& caps = shape_.caps;
  caps.remoteRead = qp_.reads(peer) > 0;
  caps.eagerBytes = std::min<size_t>(caps.eagerBytes, peer.eagerBytes);
  caps.smallBytes = std::min(caps.smallBytes, caps.eagerBytes);
  caps.creditBytes = std::min<size_t>(caps.creditBytes, peer.creditBytes);
  caps.maxFrameBytes = std::min<size_t>(caps.maxFrameBytes, peer.maxMessage);
}

void Endpoint::destroy() {
  qp_.destroy();
  sends_.clear();
}

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
