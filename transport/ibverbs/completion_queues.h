// Where all queue pairs of a device report what is complete. A queue never
// overruns: each queue pair that is bound to one has room reserved in it for
// every request that it can have posted, signalled or not, since one in error
// completes them all.
//
// Under the domain's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gloo/config.h"
#include "transport/ibverbs/adapter.h"
#include "transport/ibverbs/handles.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {

class CompletionQueues {
 public:
  explicit CompletionQueues(Adapter& adapter);

  // A queue with room for `entries` more, which are reserved. Throws
  // IoException when the device has no more.
  ibv_cq* reserve(int entries);
  // Of a destroyed queue pair. Counts once what it left there was taken.
  void release(ibv_cq* cq, int entries);

  // Takes what is complete, at most once round; `take` is called for each.
  template <typename Take>
  [[gnu::always_inline]] bool poll(const Take& take) {
    bool moved = false;
    polls_++;
    for (size_t i = 0; i < queues_.size(); i++) {  // take may add queues
      ibv_wc done[kBatch];
      const int n = ibv_poll_cq(queues_[i].cq.get(), kBatch, done);
      if (n != 0 || queues_[i].leaving != 0) {
        moved |= taken(i, n, done, take);
      }
    }
    return moved;
  }

  // Of a queue, so far.
  uint64_t taken(const ibv_cq* cq) const { return find(cq)->taken; }
  // All is taken that was in the queue when so much had been: the last poll()
  // has left nothing behind there, or it holds no more than was taken since.
  bool emptiedSince(const ibv_cq* cq, uint64_t taken) const;

  // From now on a completion makes the channel readable; false: poll again, and
  // look for trouble.
  [[nodiscard]] bool arm();

  // Why what completes is not known any more; empty: it is.
  const std::string& trouble() const { return trouble_; }
  void distrust(const std::string& why) { trouble_ = why; }

  uint64_t completions() const;
  uint64_t systemCalls() const { return systemCalls_; }

 private:
  // Taken by one call; what is left is taken by the next poll. No attribute:
  // the call's own cost is small beside theirs.
  static constexpr int kBatch = 16;

  struct Queue {
    CqHandle cq;
    int used = 0;
    int leaving = 0;  // reserved by queue pairs that are gone
    bool armed = false;
    uint64_t taken = 0;
    uint64_t filledLast = 0;  // the last poll that may have left something
  };

  // Not a part of poll(), which finds nothing most often.
  template <typename Take>
  [[gnu::noinline]] bool taken(size_t at, int n, const ibv_wc* done,
                               const Take& take) {
    if (n < 0) {
      trouble_ = "its completion queue cannot be polled";
      return false;
    }
    if (queues_[at].leaving != 0 && n < kBatch) {
      queues_[at].used -= queues_[at].leaving;
      queues_[at].leaving = 0;
    }
    queues_[at].taken += static_cast<uint64_t>(n);
    if (n == kBatch) {
      queues_[at].filledLast = polls_;
    }
    for (int i = 0; i < n; i++) {
      take(done[i]);
    }
    return n > 0;
  }
  Queue* find(const ibv_cq* cq);
  const Queue* find(const ibv_cq* cq) const {
    return const_cast<CompletionQueues*>(this)->find(cq);
  }
  bool grow(Queue& queue, int entries);
  Queue& add(int entries);
  CqHandle create(int entries);
  void takeEvents();

  Adapter& adapter_;
  const int vector_;  // which of the device's interrupts tells of completions
  std::vector<Queue> queues_;
  uint64_t polls_ = 0;
  uint64_t systemCalls_ = 0;
  std::string trouble_;
};

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
