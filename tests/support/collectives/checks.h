// What collectives.h declares: each collective called, and its result compared.
// Included where one of them is instantiated.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gloo/allgather.h"
#include "gloo/allgatherv.h"
#include "gloo/allreduce.h"
#include "gloo/alltoall.h"
#include "gloo/alltoallv.h"
#include "gloo/broadcast.h"
#include "gloo/gather.h"
#include "gloo/gatherv.h"
#include "gloo/math.h"
#include "gloo/reduce.h"
#include "gloo/reduce_scatter.h"
#include "gloo/reduce_scatterv.h"
#include "gloo/scatter.h"
#include "tests/support/collectives.h"

GLOO_NAMESPACE_BEGIN
namespace testing_support {

template <typename T>
void addUnknown(void* c, const void* a, const void* b, size_t n) {
  sum<T>(c, a, b, n);
}

template <typename T, typename Options>
void setReduction(Options& opts, const Call& call) {
  if constexpr (kHasAverage<T>) {
    if (call.reduction == Reduction::kAverage) {
      return opts.setReduceFunction(average<T>);
    }
  }
  if constexpr (kIsNumber<T>) {
    if (call.reduction == Reduction::kCustom) {
      return opts.setReduceFunction(static_cast<Function>(&addUnknown<T>));
    }
    if (call.reduction == Reduction::kProduct) {
      return opts.setReduceFunction(static_cast<Function>(&product<T>));
    }
  }
  if constexpr (kIsNumber<T> && !kIsComplex<T>) {
    if (call.reduction == Reduction::kMin) {
      return opts.setReduceFunction(static_cast<Function>(&min<T>));
    }
    if (call.reduction == Reduction::kMax) {
      return opts.setReduceFunction(static_cast<Function>(&max<T>));
    }
  }
  opts.setReduceFunction(adder<T>());
}

template <typename T>
std::string checkAllreduce(ContextRef context, const Call& call) {
  const auto in = operandsOf<T>(call, context->rank, call.count);
  const auto before = copyOf(in);
  auto out = call.inPlace ? in : Vector<T>(call.count);
  auto opts = optionsFor<AllreduceOptions>(context, call);
  if (!call.inPlace) {
    opts.setInputs(std::vector<T*>(call.vectors, const_cast<T*>(in.data())),
                   call.count);
  }
  opts.setOutputs(std::vector<T*>{out.data()}, call.count);
  setReduction<T>(opts, call);
  opts.setMaxSegmentSize(call.segment);
  allreduce(opts);
  return either(touched("allreduce", before, in),
                differs("allreduce", out, call.count, [&](size_t i) {
                  return reducedOf<T>(call, context->size, i);
                }));
}

template <typename T>
std::string checkReduce(ContextRef context, const Call& call) {
  const int root = call.root % context->size;
  const auto in = operandsOf<T>(call, context->rank, call.count);
  const auto before = copyOf(in);
  auto out = call.inPlace ? in : Vector<T>(call.count, T(77));
  auto opts = optionsFor<ReduceOptions>(context, call);
  if (!call.inPlace) {
    opts.setInput(const_cast<T*>(in.data()), call.count);
  }
  opts.setOutput(out.data(), call.count);
  opts.setRoot(root);
  setReduction<T>(opts, call);
  opts.setMaxSegmentSize(call.segment);
  reduce(opts);
  return either(touched("reduce", before, in),
                differs("reduce", out, call.count, [&](size_t i) {
                  return context->rank == root
                             ? reducedOf<T>(call, context->size, i)
                         : call.inPlace ? before[i]
                                        : T(77);
                }));
}

template <typename T>
std::string checkBroadcast(ContextRef context, const Call& call) {
  const int root = call.root % context->size;
  const auto in = inputOf<T>(call, root, call.count);
  const auto before = copyOf(in);
  const bool isRoot = context->rank == root;
  auto out = isRoot && call.inPlace ? in : Vector<T>(call.count);
  auto opts = optionsFor<BroadcastOptions>(context, call);
  if (isRoot && !call.inPlace) {
    opts.setInput(const_cast<T*>(in.data()), call.count);
  }
  opts.setOutput(out.data(), call.count);
  opts.setRoot(root);
  broadcast(opts);
  return either(touched("broadcast", before, in),
                differs("broadcast", out, call.count,
                        [&](size_t i) { return before[i]; }));
}

// In place: the root's part stays where it is.
template <typename T>
std::string checkScatter(ContextRef context, const Call& call) {
  const int root = call.root % context->size;
  const bool isRoot = context->rank == root;
  std::vector<Vector<T>> parts;
  std::vector<std::vector<T>> before;
  std::vector<T*> pointers;
  for (int to = 0; isRoot && to < context->size; to++) {
    parts.push_back(inputOf<T>(call, to, call.count));
    pointers.push_back(parts.back().data());
    before.push_back(copyOf(parts.back()));
  }
  Vector<T> out(call.count);
  auto opts = optionsFor<ScatterOptions>(context, call);
  if (isRoot) {
    opts.setInputs(pointers, call.count);
  }
  if (!isRoot || !call.inPlace) {
    opts.setOutput(out.data(), call.count);
  }
  opts.setRoot(root);
  scatter(opts);
  for (size_t to = 0; to < parts.size(); to++) {
    if (auto wrong = touched("scatter", before[to], parts[to]);
        !wrong.empty()) {
      return wrong;
    }
  }
  const auto& result =
      isRoot && call.inPlace ? parts[static_cast<size_t>(root)] : out;
  return differs("scatter", result, call.count,
                 [&](size_t i) { return valueOf<T>(call, context->rank, i); });
}

// All parts one after another; a rank's own one in place if `own`.
template <typename T>
Vector<T> gathered(const Call& call, const std::vector<size_t>& counts,
                   int own = -1) {
  Vector<T> all;
  for (int rank = 0; rank < static_cast<int>(counts.size()); rank++) {
    const size_t n = counts[static_cast<size_t>(rank)];
    const auto part =
        own < 0 || own == rank ? inputOf<T>(call, rank, n) : Vector<T>(n);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// gather(v) and allgather(v): set() gives the output, run() calls.
template <typename T, typename Options, typename Set, typename Run>
std::string checkGathering(const char* name, ContextRef context,
                           const Call& call, const std::vector<size_t>& counts,
                           bool hasOutput, Options opts, const Set& set,
                           const Run& run) {
  const auto rank = static_cast<size_t>(context->rank);
  auto in = inputOf<T>(call, context->rank, counts[rank]);
  const auto before = copyOf(in);
  const auto expected = gathered<T>(call, counts);
  auto out = hasOutput && call.inPlace
                 ? gathered<T>(call, counts, context->rank)
                 : Vector<T>(expected.size());
  if (!hasOutput || !call.inPlace) {
    opts.setInput(in.data(), in.size());
  } else if (call.seed % 2 == 0) {  // or none: the same
    opts.setInput(out.data() + totalOf(counts, context->rank), counts[rank]);
  }
  if (hasOutput) {
    set(opts, out);
  }
  run(opts);
  return either(touched(name, before, in),
                differs(name, out, hasOutput ? out.size() : 0,
                        [&](size_t i) { return expected[i]; }));
}

template <typename T>
std::string checkGather(ContextRef context, const Call& call) {
  const int root = call.root % context->size;
  auto opts = optionsFor<GatherOptions>(context, call);
  opts.setRoot(root);
  return checkGathering<T>(
      "gather", context, call,
      std::vector<size_t>(static_cast<size_t>(context->size), call.count),
      context->rank == root, std::move(opts),
      [](auto& o, auto& out) { o.setOutput(out.data(), out.size()); },
      [](auto& o) { gather(o); });
}

template <typename T>
std::string checkGatherv(ContextRef context, const Call& call) {
  const int root = call.root % context->size;
  const auto counts = countsOf(call, context->size);
  auto opts = optionsFor<GathervOptions>(context, call);
  opts.setRoot(root);
  return checkGathering<T>(
      "gatherv", context, call, counts, context->rank == root, std::move(opts),
      [&](auto& o, auto& out) { o.setOutput(out.data(), counts); },
      [](auto& o) { gatherv(o); });
}

template <typename T>
std::string checkAllgather(ContextRef context, const Call& call) {
  return checkGathering<T>(
      "allgather", context, call,
      std::vector<size_t>(static_cast<size_t>(context->size), call.count), true,
      optionsFor<AllgatherOptions>(context, call),
      [](auto& o, auto& out) { o.setOutput(out.data(), out.size()); },
      [](auto& o) { allgather(o); });
}

template <typename T>
std::string checkAllgatherv(ContextRef context, const Call& call) {
  const auto counts = countsOf(call, context->size);
  return checkGathering<T>(
      "allgatherv", context, call, counts, true,
      optionsFor<AllgathervOptions>(context, call),
      [&](auto& o, auto& out) { o.setOutput(out.data(), counts); },
      [](auto& o) { allgatherv(o); });
}

template <typename T>
std::string checkReduceScatter(ContextRef context, const Call& call) {
  const size_t begin = call.count * static_cast<size_t>(context->rank);
  auto in = operandsOf<T>(call, context->rank,
                          call.count * static_cast<size_t>(context->size));
  const auto before = call.inPlace ? std::vector<T>() : copyOf(in);
  Vector<T> out(call.count);
  auto opts = optionsFor<ReduceScatterOptions>(context, call);
  if (call.inPlace) {
    opts.setOutput(in.data(), in.size());
  } else {
    opts.setInput(in.data(), in.size());
    opts.setOutput(out.data(), out.size());
  }
  setReduction<T>(opts, call);
  opts.setMaxSegmentSize(call.segment);
  reduce_scatter(opts);
  return either(touched("reduce_scatter", before, in),
                differs("reduce_scatter", call.inPlace ? in : out, call.count,
                        [&](size_t i) {
                          return reducedOf<T>(call, context->size, begin + i);
                        }));
}

template <typename T>
std::string checkReduceScatterv(ContextRef context, const Call& call) {
  const auto counts = countsOf(call, context->size);
  const size_t begin = totalOf(counts, context->rank);
  const size_t mine = counts[static_cast<size_t>(context->rank)];
  auto in = operandsOf<T>(call, context->rank, totalOf(counts, context->size));
  const auto before = call.inPlace ? std::vector<T>() : copyOf(in);
  Vector<T> out(mine);
  auto opts = optionsFor<ReduceScattervOptions>(context, call);
  if (call.inPlace) {
    opts.setOutput(in.data(), counts);
  } else {
    opts.setInput(in.data(), counts);
    opts.setOutput(out.data(), out.size());
  }
  setReduction<T>(opts, call);
  opts.setMaxSegmentSize(call.segment);
  reduce_scatterv(opts);
  return either(
      touched("reduce_scatterv", before, in),
      differs("reduce_scatterv", call.inPlace ? in : out, mine, [&](size_t i) {
        return reducedOf<T>(call, context->size, begin + i);
      }));
}

// Part `to` of rank `from` is that of its input from to * count on.
template <typename T>
std::string checkAlltoall(ContextRef context, const Call& call) {
  const size_t n = call.count;
  auto in =
      inputOf<T>(call, context->rank, n * static_cast<size_t>(context->size));
  const auto before = call.inPlace ? std::vector<T>() : copyOf(in);
  Vector<T> out(in.size());
  auto opts = optionsFor<AlltoallOptions>(context, call);
  if (!call.inPlace) {
    opts.setInput(in.data(), in.size());
  }
  opts.setOutput(call.inPlace ? in.data() : out.data(), in.size());
  alltoall(opts);
  return either(
      touched("alltoall", before, in),
      differs("alltoall", call.inPlace ? in : out, in.size(), [&](size_t i) {
        return valueOf<T>(call, static_cast<int>(i / n),
                          n * static_cast<size_t>(context->rank) + i % n);
      }));
}

// Part `to` of rank `from` begins with its value number 11 * to.
template <typename T>
std::string checkAlltoallv(ContextRef context, const Call& call) {
  std::vector<int64_t> sent;
  std::vector<int64_t> received;
  Vector<T> in;
  Vector<T> expected;
  for (int peer = 0; peer < context->size; peer++) {
    const size_t to = countOf(call, context->rank, peer);
    const size_t from = countOf(call, peer, context->rank);
    sent.push_back(static_cast<int64_t>(to));
    received.push_back(static_cast<int64_t>(from));
    const auto mine =
        inputOf<T>(call, context->rank, to, 11 * static_cast<size_t>(peer));
    const auto theirs =
        inputOf<T>(call, peer, from, 11 * static_cast<size_t>(context->rank));
    in.insert(in.end(), mine.begin(), mine.end());
    expected.insert(expected.end(), theirs.begin(), theirs.end());
  }
  const auto before = call.inPlace ? std::vector<T>() : copyOf(in);
  Vector<T> out(expected.size());
  auto opts = optionsFor<AlltoallvOptions>(context, call);
  if (!call.inPlace) {
    opts.setInput(in.data(), sent);
  }
  opts.setOutput(call.inPlace ? in.data() : out.data(), received);
  alltoallv(opts);
  return either(touched("alltoallv", before, in),
                differs("alltoallv", call.inPlace ? in : out, expected.size(),
                        [&](size_t i) { return expected[i]; }));
}

#define GLOO_TEST_DEFINE(check, T) \
  template std::string check<T>(ContextRef, const Call&);
#define GLOO_TEST_DEFINE_ALL(T) GLOO_TEST_FOR_EACH_CHECK(GLOO_TEST_DEFINE, T)

}  // namespace testing_support
GLOO_NAMESPACE_END
