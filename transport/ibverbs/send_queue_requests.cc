// How a SendQueue makes and posts its requests.
#include <arpa/inet.h>

#include <utility>

#include "transport/base/copy.h"
#include "transport/ibverbs/send_queue.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {

using base::FrameHeader;

// Puts a request behind those that are prepared: its number there.
uint32_t SendQueue::link() {
  const uint32_t at = chained_++;
  if (at > 0) {
    requests_[at - 1].next = &requests_[at];
  }
  requests_[at].next = nullptr;
  requests_[at].wr_id = tag_ + next_;
  postedAt(next_++) = Posted{};
  unsignalled_++;
  return at;
}

// REQUIRES room(item).
void SendQueue::append(const Item& item) {
  const uint32_t at = link();
  ibv_send_wr& request = requests_[at];
  ibv_sge& place = places_[at];
  Posted& posted = postedAt(next_ - 1);
  uint32_t immediate = item.immediate;
  if (item.what == What::kFrame) {
    immediate = fill(item, at, posted);
    place.lkey = layout_.localKey;
  } else {
    place.addr = reinterpret_cast<uintptr_t>(item.local);
    place.length = static_cast<uint32_t>(item.bytes);
    place.lkey = item.localKey;
    posted.end = item.what == What::kEnd;
  }
  request.num_sge = place.length > 0 ? 1 : 0;
  posted.bytes = place.length;
  describe(item, immediate, request);
  credits_ -= takesCredit(item) ? 1 : 0;
  if (item.what != What::kFrame && item.token != nullptr) {
    posted.token = item.token;
    borrowed_++;
    unknown_ = at;
  }
  if (unsignalled_ >= signalEvery_ || posted.end) {
    signal(at);
  }
}

// A completion tells of all requests before it.
void SendQueue::signal(uint32_t at) {
  requests_[at].send_flags |= IBV_SEND_SIGNALED;
  counts_.signalled++;
  unsignalled_ = chained_ - 1 - at;
  unknown_ = kNone;
}

// Puts a frame where it leaves from; returns its immediate.
uint32_t SendQueue::fill(const Item& item, uint32_t at, Posted& posted) {
  char* to = inlinedAt(at);
  if (!fitsInline(item.head + item.bytes)) {
    to = layout_.memory + nextSlot_ * layout_.slotBytes;
    nextSlot_ = (nextSlot_ + 1) % layout_.slots;
    slotsTaken_++;
    posted.slot = true;
  }
  size_t head = item.head;
  uint32_t immediate = base::kNoImmediate;
  if (head == base::kShortHeadBytes) {
    base::encodeShort(base::shortOf(*item.header), takeOwed(), to);
  } else if (const auto delta = deltaTo(item)) {
    head = 0;
    immediate = *delta + takeOwed();
  } else {
    base::encode(*item.header, to);
    base::setLinkCredits(to, takeOwed());
  }
  base::copyBytes(to + head, item.local, item.bytes);
  counts_.bytesCopied += item.bytes;
  places_[at].addr = reinterpret_cast<uintptr_t>(to);
  places_[at].length = static_cast<uint32_t>(head + item.bytes);
  return immediate;
}

// The immediate of a frame that needs no head. Remembers that one; the peer has
// either been sent it or knows it now.
std::optional<uint32_t> SendQueue::deltaTo(const Item& item) {
  if (!base::fitsShortHead(*item.header)) {
    return std::nullopt;
  }
  const base::ShortMessage message = base::shortOf(*item.header);
  const auto delta = base::deltaOf(std::exchange(lastHead_, message), message);
  if (!delta || fitsInline(item.bytes)) {  // a slot was taken, with a head
    return std::nullopt;
  }
  return kHeadlessImmediate + (uint32_t{delta->seen} << kSeenShift) +
         (delta->nextOperation ? kNextOperation : 0);
}

void SendQueue::describe(const Item& item, uint32_t immediate,
                         ibv_send_wr& request) {
  const bool told = immediate != base::kNoImmediate;
  request.imm_data = htonl(immediate);
  request.send_flags = 0;
  if (item.what == What::kRead) {
    request.opcode = IBV_WR_RDMA_READ;
  } else if (item.what == What::kWrite) {
    request.opcode = told ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
  } else {
    request.opcode = told ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
  }
  request.wr.rdma.remote_addr = item.remote.address;
  request.wr.rdma.rkey = item.remote.key;
  if (item.what != What::kRead && item.hosts && request.num_sge > 0 &&
      fitsInline(request.sg_list->length)) {
    request.send_flags |= IBV_SEND_INLINE;
  }
}

// The last of those that use the caller's memory asks for a completion.
void SendQueue::post() {
  if (unknown_ != kNone) {
    signal(unknown_);
  }
  ibv_send_wr* bad = nullptr;
  counts_.posts += chained_;
  counts_.doorbells++;
  chained_ = 0;
  if (const int error = ibv_post_send(qp_, requests_.data(), &bad);
      error != 0) {
    error_ = error;
  }
}

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
