// The receives of one queue pair: equal buffers, each of which takes a frame,
// or the notice of a write that needs no bytes. Counts the credits that the
// peer is owed for them.
//
// Under the domain's lock.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gloo/config.h"
#include "gloo/internal/statistics.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {

class ReceiveRing {
 public:
  // The peer starts with `credits`; so many receives are posted, and kReserve
  // more for messages that only return credits: those take none.
  //
  // No more than kReserve of them are ever on their way, since each returns at
  // least half of all credits: what is on its way, with the peer, and owed are
  // together `credits`.
  static constexpr uint32_t kReserve = 2;

  struct Layout {
    char* memory = nullptr;  // (credits + kReserve) * slotBytes
    uint32_t localKey = 0;
    size_t slotBytes = 0;
    uint32_t credits = 0;
  };
  // Request ids are `tag` plus the number of the buffer.
  ReceiveRing(ibv_qp* qp, const Layout& layout, uint64_t tag,
              internal::Statistics& counts);

  // Posts all receives; 0 or errno.
  [[nodiscard]] int start();

  const char* at(uint32_t slot) const {
    return layout_.memory + slot * layout_.slotBytes;
  }

  // A receive was taken, and what is in its buffer is not needed any more.
  // Posted again by and by, several at a time. True if that was now: error()
  // and creditsDue() may have changed.
  [[nodiscard]] bool consumed(uint32_t slot) {
    ibv_recv_wr& request = requests_[slot];
    *end_ = &request;
    end_ = &request.next;
    if (++waiting_ < together_) {
      return false;
    }
    const int error = post(0);
    error_ = error_ != 0 ? error_ : error;
    return true;
  }
  // errno of the first consumed() whose receives were not all posted; 0: none.
  int error() const { return error_; }
  // The same for a message that took no credit: at once.
  [[nodiscard]] int consumedReserve(uint32_t slot);

  // Credits to return: with any frame, or, once creditsDue(), with a message
  // of their own.
  uint32_t takeOwed(uint32_t most);
  bool creditsDue() const { return owed_ >= due_; }

 private:
  // The chain, of which the first `free` took no credit; 0 or errno.
  int post(uint32_t free);

  ibv_qp* const qp_;
  const Layout layout_;
  internal::Statistics& counts_;
  const uint32_t together_;  // receives that are posted with one doorbell
  const uint32_t due_;       // credits that are returned unasked
  int error_ = 0;
  std::vector<ibv_sge> places_;
  std::vector<ibv_recv_wr> requests_;
  ibv_recv_wr* first_ = nullptr;  // a chain of those that are to be posted
  ibv_recv_wr** end_ = &first_;   // where the next one is linked
  uint32_t waiting_ = 0;          // in the chain, that took a credit
  uint32_t owed_ = 0;             // posted again, and not yet returned
};

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
