#include "transport/ibverbs/receive_ring.h"

#include <algorithm>

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {
namespace {

// Receives that are posted with one doorbell, at most: its cost is then small,
// and more would be missing from the peer's credits. Where `receives` are few,
// fewer; so no attribute.
constexpr uint32_t kTogether = 16;

}  // namespace

ReceiveRing::ReceiveRing(ibv_qp* qp, const Layout& layout, uint64_t tag,
                         internal::Statistics& counts)
    : qp_(qp),
      layout_(layout),
      counts_(counts),
      together_(std::min(kTogether, std::max(layout.credits / 4, 1u))),
      due_((layout.credits + 1) / 2),
      places_(layout.credits + kReserve),
      requests_(layout.credits + kReserve) {
  for (uint32_t slot = 0; slot < requests_.size(); slot++) {
    places_[slot].addr = reinterpret_cast<uintptr_t>(at(slot));
    places_[slot].length = static_cast<uint32_t>(layout_.slotBytes);
    places_[slot].lkey = layout_.localKey;
    requests_[slot].wr_id = tag + slot;
    requests_[slot].sg_list = &places_[slot];
    requests_[slot].num_sge = 1;
    requests_[slot].next =
        slot + 1 < requests_.size() ? &requests_[slot + 1] : nullptr;
  }
}

int ReceiveRing::start() {
  first_ = &requests_.front();
  end_ = &requests_.back().next;
  return post(static_cast<uint32_t>(requests_.size()));
}

int ReceiveRing::consumedReserve(uint32_t slot) {
  ibv_recv_wr& request = requests_[slot];
  request.next = first_;
  end_ = first_ == nullptr ? &request.next : end_;
  first_ = &request;
  return post(1);
}

// Credits only for what was posted: where that fails the peer runs out of them,
// and does not meet a receiver that is not ready before it hears why.
int ReceiveRing::post(uint32_t free) {
  *end_ = nullptr;
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_recv(qp_, first_, &bad);
  uint32_t posted = free + waiting_;
  if (error != 0) [[unlikely]] {
    posted = 0;
    const ibv_recv_wr* request = bad != nullptr ? first_ : nullptr;
    for (; request != nullptr && request != bad; request = request->next) {
      posted++;
    }
  }
  counts_.doorbells++;
  first_ = nullptr;
  end_ = &first_;
  owed_ += posted - std::min(posted, free);
  waiting_ = 0;
  return error;
}

uint32_t ReceiveRing::takeOwed(uint32_t most) {
  const uint32_t n = std::min(owed_, most);
  owed_ -= n;
  return n;
}

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
