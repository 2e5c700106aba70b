#include "transport/ibverbs/completion_queues.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string>
#include <utility>

#include "gloo/common/error.h"
#include "transport/base/socket.h"
#include "transport/ibverbs/memory_region.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {
namespace {

// Each has its own processor. The ranks of a host sleep on different ones, as
// far as that goes without asking each other: processes that were started
// together have numbers in a row.
int nextVector(int vectors) {
  static std::atomic<unsigned> made{0};
  const unsigned number = static_cast<unsigned>(::getpid()) + made++;
  const unsigned count = vectors > 1 ? static_cast<unsigned>(vectors) : 1;
  return static_cast<int>(number % count);
}

}  // namespace

CompletionQueues::CompletionQueues(Adapter& adapter)
    : adapter_(adapter),
      vector_(nextVector(adapter.context()->num_comp_vectors)) {}

ibv_cq* CompletionQueues::reserve(int entries) {
  for (Queue& queue : queues_) {
    if (queue.used + entries <= queue.cq->cqe || grow(queue, entries)) {
      queue.used += entries;
      return queue.cq.get();
    }
  }
  Queue& queue = add(entries);
  queue.used += entries;
  return queue.cq.get();
}

bool CompletionQueues::grow(Queue& queue, int entries) {
  const int most = adapter_.device().max_cqe;
  const int least = queue.used + entries;
  const int wanted = std::min(most, std::max(least, 2 * queue.cq->cqe));
  if (least > most || api().resizeCq(queue.cq.get(), wanted) != 0) {
    return false;
  }
  queue.armed = false;  // whether it still is, nobody promises
  return least <= queue.cq->cqe;
}

CqHandle CompletionQueues::create(int entries) {
  return CqHandle(api().createCq(adapter_.context(),
                                 std::min(entries, adapter_.device().max_cqe),
                                 nullptr, adapter_.channel(), vector_));
}

// Each further queue has twice the last one's places: all are polled every
// time.
CompletionQueues::Queue& CompletionQueues::add(int entries) {
  const int first = adapter_.settings().completionQueue;
  const int more = queues_.empty() ? first
                                   : static_cast<int>(std::min<int64_t>(
                                         int64_t{2} * queues_.back().cq->cqe,
                                         adapter_.device().max_cqe));
  Queue queue;
  queue.cq = create(std::max(entries, more));
  if (queue.cq == nullptr && more > std::max(entries, first)) {
    queue.cq = create(std::max(entries, first));
  }
  if (queue.cq == nullptr || queue.cq->cqe < entries) {
    const int error = queue.cq == nullptr ? errno : ENOMEM;
    const std::string limit = queue.cq == nullptr && error == ENOMEM
                                  ? lockedMemoryLimit()
                                  : std::string();
    GLOO_THROW_IO_EXCEPTION(
        "RDMA device ", adapter_.chosen().device,
        " has no completion queue for ", entries,
        " more requests: ", base::errnoText(error),
        " (lower sendQueue and receives of the device's attributes, or use "
        "fewer contexts",
        limit.empty() ? "" : "; " + limit, ")");
  }
  queues_.push_back(std::move(queue));
  return queues_.back();
}

CompletionQueues::Queue* CompletionQueues::find(const ibv_cq* cq) {
  const auto it =
      std::find_if(queues_.begin(), queues_.end(),
                   [cq](const Queue& queue) { return queue.cq.get() == cq; });
  return it != queues_.end() ? &*it : nullptr;
}

void CompletionQueues::release(ibv_cq* cq, int entries) {
  find(cq)->leaving += entries;
}

bool CompletionQueues::emptiedSince(const ibv_cq* cq, uint64_t taken) const {
  const Queue& queue = *find(cq);
  return queue.filledLast != polls_ ||
         queue.taken - taken >= static_cast<uint64_t>(queue.cq->cqe);
}

uint64_t CompletionQueues::completions() const {
  uint64_t all = 0;
  for (const Queue& queue : queues_) {
    all += queue.taken;
  }
  return all;
}

// Lazy: a queue whose event has not come is still armed.
bool CompletionQueues::arm() {
  takeEvents();
  for (Queue& queue : queues_) {
    if (!queue.armed) {
      const int error = ibv_req_notify_cq(queue.cq.get(), 0);
      systemCalls_++;
      if (error != 0) {
        trouble_ =
            "its completion queue cannot be armed: " + base::errnoText(error);
        return false;
      }
      queue.armed = true;
    }
  }
  return true;
}

void CompletionQueues::takeEvents() {
  const auto armed = [](const Queue& queue) { return queue.armed; };
  while (std::any_of(queues_.begin(), queues_.end(), armed)) {
    ibv_cq* cq = nullptr;
    void* unused = nullptr;
    systemCalls_++;
    if (api().getCqEvent(adapter_.channel(), &cq, &unused) != 0) {
      return;  // none has come
    }
    api().ackCqEvents(cq, 1);
    if (Queue* queue = find(cq)) {
      queue->armed = false;
    }
  }
}

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
