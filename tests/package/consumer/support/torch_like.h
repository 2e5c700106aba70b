// The collectives as PyTorch's ProcessGroupGloo calls them; used by the
// programs in the form of its releases 1.13 and 2.x.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/broadcast.h"
#include "gloo/rendezvous/context.h"
#include "support/check.h"
#include "support/tensor.h"
#if HAVE_ALLGATHER
#include "gloo/allgather.h"
#endif
#if HAVE_ALLGATHERV
#include "gloo/allgatherv.h"
#endif
#if HAVE_ALLTOALL
#include "gloo/alltoall.h"
#endif
#if HAVE_ALLTOALLV
#include "gloo/alltoallv.h"
#endif
#if HAVE_GATHER
#include "gloo/gather.h"
#endif
#if HAVE_REDUCE
#include "gloo/reduce.h"
#endif
#if HAVE_SCATTER
#include "gloo/scatter.h"
#endif

namespace torch_like {

using ContextPtr = std::shared_ptr<::gloo::Context>;

template <typename T>
std::vector<T*> pointers(std::vector<Tensor>& tensors) {
  std::vector<T*> result(tensors.size());
  std::transform(tensors.begin(), tensors.end(), result.begin(),
                 [](Tensor& tensor) { return tensor.data<T>(); });
  return result;
}

template <typename Body>
void withType(Type type, const Body& body) {
  dispatch(type, [&](auto* null) { body(null); });
}

inline ::gloo::AllreduceOptions::Func reduction(Type type, Op op) {
  return dispatch(type, [&](auto* null) {
    return reducePointer<std::remove_reference_t<decltype(*null)>>(op);
  });
}

inline void allreduce(const ContextPtr& context, std::vector<Tensor>& tensors,
                      Op op, uint32_t tag) {
  ::gloo::AllreduceOptions opts(context);
  const Type type = tensors[0].type;
  opts.setReduceFunction(reduction(type, op));
  opts.setTag(tag);
  opts.setTimeout(std::chrono::seconds(20));
  withType(type, [&](auto* null) {
    using T = std::remove_reference_t<decltype(*null)>;
    opts.setOutputs(pointers<T>(tensors), tensors[0].elements);
  });
  ::gloo::allreduce(opts);
}

inline void broadcast(const ContextPtr& context, Tensor& tensor, int root,
                      uint32_t tag) {
  ::gloo::BroadcastOptions opts(context);
  opts.setRoot(root);
  opts.setTag(tag);
  withType(tensor.type, [&](auto* null) {
    using T = std::remove_reference_t<decltype(*null)>;
    opts.setOutput(tensor.data<T>(), tensor.elements);
  });
  ::gloo::broadcast(opts);
}

inline void barrier(const ContextPtr& context, uint32_t tag) {
  ::gloo::BarrierOptions opts(context);
  opts.setTag(tag);
  ::gloo::barrier(opts);
}

// Each rank's tensors, of every type and several lengths, summed.
inline void checkAllreduce(const ContextPtr& context, Type type,
                           size_t elements, uint32_t tag) {
  const int size = context->size;
  std::vector<Tensor> tensors(2, Tensor(type, elements));
  tensors[0].fill(context->rank + 1);
  tensors[1].fill(1);
  allreduce(context, tensors, Op::kSum, tag);
  CHECK(tensors[0].allEqual(size * (size + 1) / 2 + size));
  CHECK(tensors[1].allEqual(size * (size + 1) / 2 + size));
}

inline void checkOps(const ContextPtr& context, uint32_t tag) {
  const int rank = context->rank;
  const int size = context->size;
  const auto reduced = [&](Op op, int value) {
    std::vector<Tensor> tensors(1, Tensor(Type::kInt64, 17));
    tensors[0].fill(value);
    allreduce(context, tensors, op, tag);
    return tensors[0];
  };
  CHECK(reduced(Op::kMin, rank + 3).allEqual(3));
  CHECK(reduced(Op::kMax, rank + 3).allEqual(size + 2));
  CHECK(reduced(Op::kProduct, 2).allEqual(1 << size));
  CHECK(reduced(Op::kBitAnd, 8 | (rank == 0 ? 1 : 2))
            .allEqual(size == 1 ? 9 : 8));
}

inline void checkBroadcast(const ContextPtr& context, uint32_t tag) {
  for (int root = 0; root < context->size; root++) {
    Tensor tensor(Type::kFloat, 1000);
    tensor.fill(context->rank == root ? root + 5 : -1);
    broadcast(context, tensor, root, tag);
    CHECK(tensor.allEqual(root + 5));
  }
}

#if HAVE_REDUCE
inline void checkReduce(const ContextPtr& context, uint32_t tag) {
  ::gloo::ReduceOptions opts(context);
  Tensor tensor(Type::kInt32, 100);
  tensor.fill(context->rank + 1);
  opts.setRoot(context->size - 1);
  opts.setTag(tag);
  const ::gloo::ReduceOptions::Func sum = reduction(tensor.type, Op::kSum);
  opts.setReduceFunction(sum);
  opts.setOutput(tensor.data<int32_t>(), tensor.elements);
  ::gloo::reduce(opts);
  if (context->rank == context->size - 1) {
    CHECK(tensor.allEqual(context->size * (context->size + 1) / 2));
  }
}
#endif

#if HAVE_ALLGATHER
inline void checkAllgather(const ContextPtr& context, uint32_t tag) {
  ::gloo::AllgatherOptions opts(context);
  Tensor mine(Type::kUint8, 13);
  mine.fill(context->rank + 1);
  Tensor all(Type::kUint8, 13 * context->size);
  opts.setTag(tag);
  opts.setInput(mine.data<uint8_t>(), mine.elements);
  opts.setOutput(all.data<uint8_t>(), all.elements);
  ::gloo::allgather(opts);
  for (size_t i = 0; i < all.elements; i++) {
    CHECK(all.equals(i, static_cast<int>(i / 13) + 1));
  }
}
#endif

#if HAVE_ALLGATHERV
// As for sparse gradients: the counts were exchanged before.
inline void checkAllgatherv(const ContextPtr& context, uint32_t tag) {
  std::vector<size_t> counts;
  size_t total = 0;
  for (int i = 0; i < context->size; i++) {
    counts.push_back(3 * i + 1);
    total += counts.back();
  }
  Tensor mine(Type::kInt64, counts[context->rank]);
  mine.fill(context->rank);
  Tensor all(Type::kInt64, total);
  ::gloo::AllgathervOptions opts(context);
  opts.setTag(tag);
  opts.setInput(mine.data<int64_t>(), mine.elements);
  opts.setOutput(all.data<int64_t>(), counts);
  ::gloo::allgatherv(opts);
  size_t at = 0;
  for (int i = 0; i < context->size; i++) {
    for (size_t j = 0; j < counts[i]; j++) {
      CHECK(all.equals(at++, i));
    }
  }
}
#endif

#if HAVE_GATHER
inline void checkGather(const ContextPtr& context, uint32_t tag) {
  ::gloo::GatherOptions opts(context);
  Tensor mine(Type::kDouble, 11);
  mine.fill(context->rank);
  Tensor all(Type::kDouble, 11 * context->size);
  opts.setRoot(0);
  opts.setTag(tag);
  opts.setInput(mine.data<double>(), mine.elements);
  if (context->rank == 0) {
    opts.setOutput(all.data<double>(), all.elements);
  }
  ::gloo::gather(opts);
  for (size_t i = 0; context->rank == 0 && i < all.elements; i++) {
    CHECK(all.equals(i, static_cast<int>(i / 11)));
  }
}
#endif

#if HAVE_SCATTER
inline void checkScatter(const ContextPtr& context, uint32_t tag) {
  const int root = context->size / 2;
  ::gloo::ScatterOptions opts(context);
  std::vector<Tensor> pieces(context->size, Tensor(Type::kInt32, 9));
  for (int i = 0; i < context->size; i++) {
    pieces[i].fill(100 + i);
  }
  Tensor mine(Type::kInt32, 9);
  opts.setRoot(root);
  opts.setTag(tag);
  if (context->rank == root) {
    opts.setInputs(pointers<int32_t>(pieces), 9);
  }
  opts.setOutput(mine.data<int32_t>(), 9);
  ::gloo::scatter(opts);
  CHECK(mine.allEqual(100 + context->rank));
}
#endif

#if HAVE_ALLTOALL
inline void checkAlltoall(const ContextPtr& context, uint32_t tag) {
  ::gloo::AlltoallOptions opts(context);
  Tensor in(Type::kInt32, 5 * context->size);
  Tensor out(Type::kInt32, 5 * context->size);
  for (size_t i = 0; i < in.elements; i++) {
    in.set(i, context->rank * 100 + static_cast<int>(i / 5));
  }
  opts.setTag(tag);
  opts.setInput(in.data<int32_t>(), in.elements);
  opts.setOutput(out.data<int32_t>(), out.elements);
  ::gloo::alltoall(opts);
  for (size_t i = 0; i < out.elements; i++) {
    CHECK(out.equals(i, static_cast<int>(i / 5) * 100 + context->rank));
  }
}
#endif

#if HAVE_ALLTOALLV
// Rank r sends r + 1 elements to each.
inline void checkAlltoallv(const ContextPtr& context, uint32_t tag) {
  const int rank = context->rank;
  std::vector<int64_t> sendCounts(context->size, rank + 1);
  std::vector<int64_t> recvCounts;
  for (int i = 0; i < context->size; i++) {
    recvCounts.push_back(i + 1);
  }
  Tensor in(Type::kInt64, (rank + 1) * context->size);
  in.fill(rank);
  Tensor out(Type::kInt64, context->size * (context->size + 1) / 2);
  ::gloo::AlltoallvOptions opts(context);
  opts.setTag(tag);
  opts.setInput(in.data<int64_t>(), sendCounts);
  opts.setOutput(out.data<int64_t>(), recvCounts);
  ::gloo::alltoallv(opts);
  size_t at = 0;
  for (int i = 0; i < context->size; i++) {
    for (int j = 0; j <= i; j++) {
      CHECK(out.equals(at++, i));
    }
  }
}
#endif

}  // namespace torch_like
