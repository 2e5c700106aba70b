#include "transport/ibverbs/send_queue.h"

#include <arpa/inet.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "transport/base/copy.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {

using base::FrameHeader;

SendQueue::SendQueue(ibv_qp* qp, const Layout& layout, uint64_t tag,
                     ReceiveRing& receives, internal::Statistics& counts)
    : qp_(qp),
      layout_(layout),
      tag_(tag),
      receives_(receives),
      counts_(counts),
      // Half of what there is must come back while the rest is in use.
      signalEvery_(std::max(
          1u, std::min({kSignalEvery, layout.depth / 4, layout.slots / 4}))),
      inlined_(size_t{kChain} * layout.inlineBytes),
      posted_(std::bit_ceil(layout.depth)),
      mask_(std::bit_ceil(layout.depth) - 1) {
  done_.reserve(layout.depth);
  for (uint32_t i = 0; i < kChain; i++) {
    requests_[i].sg_list = &places_[i];
  }
}

void SendQueue::open(uint32_t credits) {
  open_ = true;
  credits_ = allCredits_ = credits;
  flush();
}

bool SendQueue::addCredits(uint32_t n) {
  credits_ += n;
  return credits_ <= allCredits_ && n <= allCredits_;
}

bool SendQueue::send(const FrameHeader& header, const char* payload,
                     void* token) {
  counts_.framesSent++;
  counts_.bytesSent += header.payloadBytes;
  Item item;
  item.header = &header;
  // The short one is worth its while where the frame is short, too.
  item.head = fitsShort(header.payloadBytes) && base::fitsShortHead(header)
                  ? base::kShortHeadBytes
                  : FrameHeader::kBytes;
  item.local = payload;
  item.bytes = header.payloadBytes;
  if (postNow(item)) {
    return true;
  }
  item.token = token;
  keep(item, token == nullptr);
  return token == nullptr;
}

bool SendQueue::write(const char* local, size_t bytes, uint32_t localKey,
                      bool hosts, base::RemoteMemory remote, uint32_t immediate,
                      void* token) {
  counts_.bytesSent += bytes;
  Item item;
  item.what = What::kWrite;
  item.local = local;
  item.bytes = bytes;
  item.remote = remote;
  item.immediate = immediate;
  item.localKey = localKey;
  item.hosts = hosts;
  // What the peer is told of may be said to be sent as soon as it is copied;
  // of the rest, a completion says that it has arrived.
  const bool copied =
      hosts && fitsInline(bytes) && immediate != base::kNoImmediate;
  item.token = copied ? nullptr : token;
  if (postNow(item)) {
    return copied;
  }
  item.token = token;
  keep(item, false);
  return false;
}

// Makes no item, nor does writeNow: of these messages the latency counts.
bool SendQueue::sendNow(const base::ShortMessage& message,
                        const char* payload) {
  if (!fitsShort(message.bytes) || !mayTellNow()) {
    return false;
  }
  const uint32_t at = link();
  char* const to = inlinedAt(at);
  base::encodeShort(message, takeOwed(), to);
  base::copyBytes(to + base::kShortHeadBytes, payload, message.bytes);
  requests_[at].opcode = IBV_WR_SEND;
  tellNow(at, to, base::kShortHeadBytes + message.bytes);
  counts_.framesSent++;
  counts_.bytesSent += message.bytes;
  counts_.bytesCopied += message.bytes;
  return true;
}

// REQUIRES mayTellNow(): from link() to here.
void SendQueue::tellNow(uint32_t at, const char* from, size_t bytes) {
  credits_--;
  requests_[at].send_flags = IBV_SEND_INLINE;
  requests_[at].num_sge = 1;
  places_[at].addr = reinterpret_cast<uintptr_t>(from);
  places_[at].length = static_cast<uint32_t>(bytes);
  if (unsignalled_ >= signalEvery_) {
    signal(at);
  }
  post();
}

bool SendQueue::writeNow(const char* local, size_t bytes,
                         base::RemoteMemory remote, uint32_t immediate) {
  if (bytes == 0 || !fitsInline(bytes) || !mayTellNow()) {
    return false;
  }
  counts_.bytesSent += bytes;
  const uint32_t at = link();
  ibv_send_wr& request = requests_[at];
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.imm_data = htonl(immediate);
  request.wr.rdma.remote_addr = remote.address;
  request.wr.rdma.rkey = remote.key;
  tellNow(at, local, bytes);
  return true;
}

void SendQueue::read(char* local, size_t bytes, uint32_t localKey,
                     base::RemoteMemory remote, void* token) {
  Item item;
  item.what = What::kRead;
  item.local = local;
  item.bytes = bytes;
  item.localKey = localKey;
  item.remote = remote;
  item.token = token;
  if (!postNow(item)) {
    keep(item, false);
  }
}

void SendQueue::sendEnd() {
  Item item;
  item.what = What::kEnd;
  item.immediate = kEndImmediate;
  if (!postNow(item)) {
    keep(item, false);
  }
}

bool SendQueue::sendCredits() {
  Item item;
  item.what = What::kCredits;
  if (!room(item)) {
    return false;
  }
  item.immediate = kCreditsImmediate + receives_.takeOwed(UINT16_MAX);
  append(item);
  post();
  counts_.creditsSent++;
  return true;
}

// A write of no bytes: no key is looked at, and the peer is not told.
std::optional<uint32_t> SendQueue::probe() {
  if (!ready()) {
    return std::nullopt;
  }
  Item item;
  item.what = What::kWrite;
  append(item);
  if (unsignalled_ > 0) {
    signal(chained_ - 1);
  }
  post();
  return next_ - 1;
}

bool SendQueue::takesCredit(const Item& item) const {
  return item.what == What::kFrame || item.what == What::kEnd ||
         (item.what == What::kWrite && item.immediate != base::kNoImmediate);
}

bool SendQueue::room(const Item& item) const {
  const bool needsSlot =
      item.what == What::kFrame && !fitsInline(item.head + item.bytes);
  return ready() && (!takesCredit(item) || credits_ > 0) &&
         (!needsSlot || slotsTaken_ < layout_.slots);
}

bool SendQueue::postNow(const Item& item) {
  const bool uncopied = item.what == What::kWrite && item.token != nullptr;
  const bool waits = std::exchange(hold_, false) && uncopied;
  const bool leaves = count_ == 0 && room(item);
  if (leaves) {
    append(item);
  }
  if (chained_ > 0 && (!waits || chained_ == kChain)) {
    post();
  }
  return leaves;
}

bool SendQueue::flush() {
  bool any = false;
  while (count_ > 0) {
    Item& item = at(0).item;
    item.header = &at(0).header;
    if (!room(item)) {
      break;
    }
    append(item);
    // A frame was copied; so was what is inlined, but that may be a put, which
    // ends when it has arrived.
    if (item.what == What::kFrame && item.token != nullptr) {
      done_.push_back(item.token);
    }
    first_ = (first_ + 1) % queue_.size();
    count_--;
    any = true;
    if (chained_ == kChain) {
      post();
    }
  }
  if (chained_ > 0) {
    any = true;
    post();
  }
  return any;
}

bool SendQueue::completed(uint32_t sequence) {
  if (sequence - oldest_ >= next_ - oldest_) {
    return false;
  }
  while (oldest_ != sequence + 1) {
    const Posted& posted = postedAt(oldest_);
    oldest_++;
    slotsTaken_ -= posted.slot ? 1 : 0;
    endSent_ = endSent_ || posted.end;
    if (posted.token != nullptr) {
      borrowed_--;
      done_.push_back(posted.token);
    }
  }
  return true;
}

void SendQueue::keep(const Item& item, bool copy) {
  if (count_ == queue_.size()) {
    grow();
  }
  Kept& kept = at(count_);
  kept.item = item;
  if (item.header != nullptr) {
    kept.header = *item.header;
  }
  if (copy && item.bytes > 0) {
    kept.copy.assign(item.local, item.local + item.bytes);
    kept.item.local = kept.copy.data();
  }
  count_++;
}

void SendQueue::grow() {
  std::vector<Kept> bigger(2 * queue_.size());
  for (uint32_t i = 0; i < count_; i++) {
    bigger[i] = std::move(at(i));  // a moved vector keeps its memory's place
  }
  queue_ = std::move(bigger);
  first_ = 0;
}

void SendQueue::clear() {
  count_ = chained_ = 0;
  borrowed_ = 0;
  unknown_ = kNone;
  open_ = false;
  done_.clear();
}

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
