// What a PyTorch job does with its process group, release by release the same:
// collectives queued to threads, then messages between pairs of ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "gloo/transport/unbound_buffer.h"
#include "support/torch_like.h"
#include "support/work_queue.h"

namespace torch_like {

using Contexts = std::vector<ContextPtr>;

using Work = std::function<void(const ContextPtr&, uint32_t tag)>;

inline std::vector<Work> allWork() {
  std::vector<Work> works;
  for (const Type type : {Type::kFloat, Type::kDouble, Type::kHalf, Type::kInt8,
                          Type::kUint8, Type::kInt32, Type::kInt64}) {
    for (const size_t elements : {1, 1000, 300000}) {
      works.push_back([=](const ContextPtr& context, uint32_t tag) {
        checkAllreduce(context, type, elements, tag);
      });
    }
  }
  works.push_back(checkOps);
  works.push_back(checkBroadcast);
#if HAVE_REDUCE
  works.push_back(checkReduce);
#endif
#if HAVE_ALLGATHER
  works.push_back(checkAllgather);
#endif
#if HAVE_ALLGATHERV
  works.push_back(checkAllgatherv);
#endif
#if HAVE_GATHER
  works.push_back(checkGather);
#endif
#if HAVE_SCATTER
  works.push_back(checkScatter);
#endif
#if HAVE_ALLTOALL
  works.push_back(checkAlltoall);
#endif
#if HAVE_ALLTOALLV
  works.push_back(checkAlltoallv);
#endif
  return works;
}

// Collectives take the contexts in turn, each with a tag of its own, and run
// on two threads: ranks may start them in different orders.
inline void runCollectives(const Contexts& contexts, uint32_t firstTag) {
  WorkQueue queue(2);
  std::vector<std::future<void>> done;
  uint32_t tag = firstTag;
  for (const Work& work : allWork()) {
    const ContextPtr context = contexts[tag % contexts.size()];
    done.push_back(queue.add([=] { work(context, tag); }));
    tag++;
  }
  for (auto& future : done) {
    future.get();
  }
}

// isend, irecv and irecv from any source.
inline void runMessages(const ContextPtr& context, uint32_t tag) {
  const int rank = context->rank;
  const int size = context->size;
  Tensor out(Type::kInt32, 2000);
  out.fill(rank);
  if (rank != 0) {
    auto buffer =
        context->createUnboundBuffer(out.bytes.data(), out.bytes.size());
    buffer->send(0, tag);
    CHECK(buffer->waitSend());
    return;
  }
  // As ProcessGroupGloo makes it: as many zeros as ranks, then all ranks.
  std::vector<int> sources(size);
  for (int i = 0; i < size; i++) {
    sources.push_back(i);
  }
  std::vector<bool> seen(size, false);
  for (int i = 1; i < size; i++) {
    Tensor in(Type::kInt32, 2000);
    auto buffer =
        context->createUnboundBuffer(in.bytes.data(), in.bytes.size());
    buffer->recv(sources, tag);
    int source = -1;
    CHECK(buffer->waitRecv(&source, std::chrono::seconds(20)));
    CHECK(source > 0 && source < size && !seen[source]);
    seen[source] = true;
    CHECK(in.allEqual(source));
  }
}

// A wait that another thread aborts returns false; the context lives on.
inline void runAbort(const ContextPtr& context, uint32_t tag) {
  Tensor in(Type::kInt32, 10);
  auto buffer = context->createUnboundBuffer(in.bytes.data(), in.bytes.size());
  buffer->recv((context->rank + 1) % context->size, tag);
  std::thread other([&] { buffer->abortWaitRecv(); });
  CHECK(!buffer->waitRecv());
  other.join();
}

// Nobody sends: the wait ends with an IoException; that of rank 0 before
// anybody else fails, since their leaving would be another reason.
inline void runTimeout(const ContextPtr& context, uint32_t tag) {
  Tensor in(Type::kInt32, 10);
  auto buffer = context->createUnboundBuffer(in.bytes.data(), in.bytes.size());
  buffer->recv((context->rank + 1) % context->size, tag);
  const bool first = context->rank == 0;
  const std::chrono::milliseconds limit(first ? 100 : 1000);
  CHECK(throwsWith<::gloo::IoException>(first ? "Timed out" : "",
                                        [&] { buffer->waitRecv(limit); }));
}

}  // namespace torch_like
