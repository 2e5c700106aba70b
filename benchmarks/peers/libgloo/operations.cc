#include "operations.h"

#include <gloo/allgather.h>
#include <gloo/allgather_ring.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_bcube.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/broadcast.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/reduce_scatter.h>

#include <stdexcept>
#include <utility>

namespace {

using ContextPtr = std::shared_ptr<gloo::Context>;
using measure::Operation;
using measure::Work;

void (*const kSum)(void*, const void*, const void*, size_t) = &gloo::sum<float>;

// The older classes: prepared by the constructor, done by run().
template <typename Algorithm, typename... Args>
Operation prepared(Args&&... args) {
  auto algorithm = std::make_shared<Algorithm>(std::forward<Args>(args)...);
  return [algorithm] { algorithm->run(); };
}

Operation newStyle(const ContextPtr& context, const Work& work) {
  const std::string& name = work.collective;
  if (name == "allreduce") {
    auto options = std::make_shared<gloo::AllreduceOptions>(context);
    options->setOutput(work.output, work.outputElements);
    options->setReduceFunction(kSum);
    return [options] { gloo::allreduce(*options); };
  }
  if (name == "reduce") {
    auto options = std::make_shared<gloo::ReduceOptions>(context);
    options->setInput(work.input, work.inputElements);
    options->setOutput(work.output, work.outputElements);
    options->setRoot(0);
    options->setReduceFunction(kSum);
    return [options] { gloo::reduce(*options); };
  }
  if (name == "broadcast") {
    auto options = std::make_shared<gloo::BroadcastOptions>(context);
    options->setOutput(work.output, work.outputElements);
    options->setRoot(0);
    return [options] { gloo::broadcast(*options); };
  }
  if (name == "allgather") {
    auto options = std::make_shared<gloo::AllgatherOptions>(context);
    options->setInput(work.input, work.inputElements);
    options->setOutput(work.output, work.outputElements);
    return [options] { gloo::allgather(*options); };
  }
  if (name == "alltoall") {
    auto options = std::make_shared<gloo::AlltoallOptions>(context);
    options->setInput(work.input, work.inputElements);
    options->setOutput(work.output, work.outputElements);
    return [options] { gloo::alltoall(*options); };
  }
  auto options = std::make_shared<gloo::BarrierOptions>(context);
  return [options] { gloo::barrier(*options); };
}

// In place: see resultInInput().
Operation reduceScatter(const ContextPtr& context, const Work& work) {
  const std::vector<int> counts(size_t(context->size), int(work.blockElements));
  return prepared<gloo::ReduceScatterHalvingDoubling<float>>(
      context, std::vector<float*>{work.input}, int(work.inputElements),
      counts);
}

}  // namespace

std::vector<std::string> modesOf(const std::string& collective, int size) {
  if (collective == "allreduce") {
    std::vector<std::string> names{"ring", "ring_chunked", "halving_doubling",
                                   "new"};
    // With groups of two, a context's default, it refuses an odd number of
    // ranks, and its sums of six are wrong.
    if ((size & (size - 1)) == 0) {
      names.emplace_back("bcube");
    }
    return names;
  }
  if (collective == "broadcast") {
    return {"new", "one_to_all"};
  }
  if (collective == "allgather") {
    return {"new", "ring"};
  }
  if (collective == "barrier") {
    return {"new", "all_to_all"};
  }
  if (collective == "reduce_scatter") {
    return {"halving_doubling"};
  }
  if (collective == "pingpong") {
    return {};
  }
  return {"new"};
}

Operation prepareOperation(const ContextPtr& context, const Work& work,
                           const std::string& mode) {
  if (mode == "new") {
    return newStyle(context, work);
  }
  const int elements = int(work.outputElements);
  const std::vector<float*> pointers{work.output};
  if (mode == "ring_chunked") {
    return prepared<gloo::AllreduceRingChunked<float>>(context, pointers,
                                                       elements);
  }
  if (mode == "one_to_all") {
    return prepared<gloo::BroadcastOneToAll<float>>(context, pointers,
                                                    elements);
  }
  if (mode == "ring" && work.collective == "allgather") {
    return prepared<gloo::AllgatherRing<float>>(
        context, std::vector<const float*>{work.input}, work.output,
        int(work.inputElements));
  }
  if (mode == "ring") {
    return prepared<gloo::AllreduceRing<float>>(context, pointers, elements);
  }
  if (mode == "bcube") {
    return prepared<gloo::AllreduceBcube<float>>(context, pointers, elements);
  }
  if (mode == "all_to_all") {
    return prepared<gloo::BarrierAllToAll>(context);
  }
  if (mode != "halving_doubling") {
    throw std::runtime_error("unknown algorithm '" + mode + "'");
  }
  if (work.collective == "reduce_scatter") {
    return reduceScatter(context, work);
  }
  return prepared<gloo::AllreduceHalvingDoubling<float>>(context, pointers,
                                                         elements);
}
