#include "gloo/internal/persistent.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "algorithms/collective.h"
#include "algorithms/reduce_locally.h"
#include "gloo/common/logging.h"
#include "gloo/internal/cuda.h"
#include "gloo/internal/fork.h"
#include "gloo/pairwise_exchange.h"

GLOO_NAMESPACE_BEGIN
namespace internal {
namespace {

using namespace algorithms;

// Of the slots of objects: no caller's and none of the free functions'.
constexpr uint8_t kObjectSlotPrefix = 0xf0;

// No more than there is memory for: nothing that is reckoned of it wraps.
size_t checkedBytes(size_t elements, size_t elementSize) {
  GLOO_ENFORCE(elements <= PTRDIFF_MAX / elementSize, elements, " elements of ",
               elementSize, " bytes: no memory holds as many");
  return elements * elementSize;
}

// A plan that is checked out as long as the object lives, or until the context
// is connected anew: the state is gone then.
class Base : public Persistent {
 public:
  ~Base() override {
    if (lease_.has_value() && alive_.expired()) {
      lease_->abandon();
    }
  }

  void run() final {
    origin_.check("object");
    GLOO_ENFORCE(!lease_.has_value() || !alive_.expired(),
                 nameOf(request_.collective),
                 ": this object was made for connections that others have "
                 "replaced; make a new one");
    runOnce();
  }

 protected:
  Base(const std::shared_ptr<Context>& context, std::vector<void*> vectors,
       const Shape& shape)
      : context_(context) {
    call_.context = context;
    call_.elementSize = shape.elementSize;
    call_.type = shape.type;
    call_.root = shape.root;
    call_.mayBeOnDevice = cudaDriver() != nullptr;
    call_.algorithmOfLong = shape.algorithm;
    const size_t bytes = checkedBytes(shape.elements, shape.elementSize);
    for (void* vector : vectors) {
      call_.outputs.add({vector, bytes});
    }
  }

  virtual void runOnce() = 0;

  void setFunction(ReduceFunction function, const char* collective) {
    call_.known = recognise(function);
    call_.reduce = std::move(function);
    requireReduceFunction(call_, collective);
  }

  // In place, on vectors of call_.outputs' length.
  Request inPlaceRequest(Collective collective) const {
    Request request = requestOf(collective, call_);
    request.counts.count = call_.outputs[0].bytes / call_.elementSize;
    request.forced = algorithmFor(call_, call_.outputs[0].bytes);
    request.inPlace = true;
    return request;
  }

  void prepare(const Request& request) {
    call_.tag = static_cast<uint32_t>(context_->nextSlot());
    arguments_ = argumentsOf(call_, kObjectSlotPrefix);
    request_ = request;
    state_ = &State::of(*context_);
    alive_ = state_->weak_from_this();
    lease_.emplace(state_->checkOut(
        request_, Slot::build(arguments_.prefix, arguments_.tag)));
    if (!call_.outputs.empty()) {
      keep(call_.outputs[0].data, call_.outputs[0].bytes);
    }
  }

  // Before memory of the caller's is written.
  void refuseFailed() const {
    algorithms::refuseFailed(state_->channel(), nameOf(request_.collective),
                             arguments_.tag);
  }

  // Of several vectors: the rank's contribution is all of them.
  void reduceOwn() {
    arguments_.own = call_.outputs.size() > 1 ? &call_.outputs : nullptr;
  }

  // Memory that messages come from and go to.
  void keep(void* data, size_t bytes) {
    kept_.push_back(state_->channel().keep(data, bytes));
  }

  // The same, of memory that goes after its registration.
  char* make(size_t bytes) {
    keep(made_.emplace_back(bytes).data(), bytes);
    return made_.back().data();
  }

  void runPlan(void* data) { runPlan(data, data); }
  void runPlan(const void* input, void* output) {
    arguments_.input = input;
    arguments_.output = output;
    arguments_.timeout = context_->getTimeout();
    state_->run(*lease_, request_, arguments_);
  }

  const std::shared_ptr<Context> context_;
  CollectiveCall call_;

 private:
  const Origin origin_;
  State* state_ = nullptr;
  std::weak_ptr<State> alive_;  // as long as the state
  Request request_;
  Arguments arguments_;
  std::optional<Lease> lease_;
  std::vector<std::vector<char>> made_;
  std::vector<std::unique_ptr<KeptMemory>> kept_;
};

class Allreduce final : public Base {
 public:
  Allreduce(const std::shared_ptr<Context>& context, std::vector<void*> vectors,
            const Shape& shape, ReduceFunction function)
      : Base(context, std::move(vectors), shape),
        isLocal_(shape.algorithm == nullptr) {
    GLOO_ENFORCE(!call_.outputs.empty(), "allreduce: no vectors");
    requireVectors(call_, "allreduce");
    setFunction(std::move(function), "allreduce");
    if (!isLocal_) {
      prepare(inPlaceRequest(Collective::kAllreduce));
      reduceOwn();
    }
  }

  void runOnce() override {
    void* const data = call_.outputs[0].data;
    if (isLocal_) {
      reduceLocally(reducerOf(call_), call_.outputs, data);
    } else {
      runPlan(data);
    }
    copyToAll(call_.outputs);
  }

 private:
  const bool isLocal_;
};

class Broadcast final : public Base {
 public:
  Broadcast(const std::shared_ptr<Context>& context, std::vector<void*> vectors,
            const Shape& shape, int rootVector)
      : Base(context,
             rotated(std::move(vectors), context->rank, shape.root, rootVector),
             shape) {
    requireVectors(call_, "broadcast");
    requireRoot(call_, "broadcast");
    prepare(inPlaceRequest(Collective::kBroadcast));
  }

  void runOnce() override {
    runPlan(call_.outputs[0].data);
    copyToAll(call_.outputs);
  }

 private:
  // The root's vector first.
  static std::vector<void*> rotated(std::vector<void*> vectors, int rank,
                                    int root, int rootVector) {
    GLOO_ENFORCE(!vectors.empty(), "broadcast: no vectors");
    if (rank == root) {
      GLOO_ENFORCE(
          rootVector >= 0 && static_cast<size_t>(rootVector) < vectors.size(),
          "broadcast: the root has no vector ", rootVector);
      std::swap(vectors[0], vectors[static_cast<size_t>(rootVector)]);
    }
    return vectors;
  }
};

class Barrier final : public Base {
 public:
  explicit Barrier(const std::shared_ptr<Context>& context)
      : Base(context, {&token_}, {nullptr, 1, 1, ElementType::kUnknown, 0}) {
    // The token stands for "heard of": joining two of them changes no byte.
    call_.known.kernel = [](void*, const void*, const void*, size_t, void*) {};
    prepare(inPlaceRequest(Collective::kBarrier));
  }

  void runOnce() override { runPlan(&token_); }

 private:
  char token_ = 0;
};

class Allgather final : public Base {
 public:
  Allgather(const std::shared_ptr<Context>& context,
            std::vector<const void*> inputs, void* output, const Shape& shape)
      : Base(context, {output}, wholeOf(shape, inputs.size(), context->size)),
        bytes_(shape.elements * shape.elementSize) {
    GLOO_ENFORCE(!inputs.empty(), "allgather: no inputs");
    Request request = inPlaceRequest(Collective::kAllgather);
    request.counts.count = shape.elements * inputs.size();
    request.inPlaceOffset =
        bytes_ * inputs.size() * static_cast<size_t>(context->rank);
    for (size_t i = 0; i < inputs.size(); i++) {
      call_.inputs.add({const_cast<void*>(inputs[i]), bytes_});
      (void)isPartOf(call_.outputs[0], request.inPlaceOffset + i * bytes_,
                     call_.inputs[i], "allgather");
    }
    requireVectors(call_, "allgather");
    own_ = static_cast<char*>(output) + request.inPlaceOffset;
    prepare(request);
  }

  void runOnce() override {
    refuseFailed();
    for (size_t i = 0; i < call_.inputs.size() && bytes_ > 0; i++) {
      std::memmove(own_ + i * bytes_, call_.inputs[i].data, bytes_);
    }
    runPlan(call_.outputs[0].data);
  }

 private:
  static Shape wholeOf(Shape shape, size_t inputs, int size) {
    const size_t parts = inputs * static_cast<size_t>(size);
    checkedBytes(shape.elements,
                 checkedBytes(std::max<size_t>(1, parts), shape.elementSize));
    shape.elements *= parts;
    return shape;
  }

  const size_t bytes_;  // of an input
  char* own_ = nullptr;
};

class ReduceScatter final : public Base {
 public:
  ReduceScatter(const std::shared_ptr<Context>& context,
                std::vector<void*> vectors, const Shape& shape,
                const std::vector<int>& counts, ReduceFunction function)
      : Base(context, std::move(vectors), shape), offsets_{0} {
    GLOO_ENFORCE(!call_.outputs.empty(), "reduce_scatter: no vectors");
    requireVectors(call_, "reduce_scatter");
    setFunction(std::move(function), "reduce_scatter");
    for (const int count : counts) {
      GLOO_ENFORCE(count >= 0, "reduce_scatter: a count is negative: ", count);
      offsets_.push_back(offsets_.back() + static_cast<size_t>(count));
    }
    requireCounts(call_, offsets_, "reduce_scatter", "result");
    GLOO_ENFORCE_EQ(offsets_.back(), shape.elements,
                    "reduce_scatter: the ranks' elements do not add up to the "
                    "number of elements");
    const auto rank = static_cast<size_t>(context->rank);
    begin_ = offsets_[rank] * shape.elementSize;
    bytes_ = offsets_[rank + 1] * shape.elementSize - begin_;
    Request request = inPlaceRequest(Collective::kReduceScatterv);
    request.counts = {};
    request.counts.sendOffsets = offsets_.data();
    request.outputOffset = begin_;
    prepare(request);
    reduceOwn();
  }

  void runOnce() override {
    char* const data = static_cast<char*>(call_.outputs[0].data);
    runPlan(data);
    // The own part lies where it was reduced; it belongs to the front.
    for (size_t i = call_.outputs.size(); i-- > 0 && bytes_ > 0;) {
      std::memmove(call_.outputs[i].data, data + begin_, bytes_);
    }
  }

 private:
  std::vector<size_t> offsets_;
  size_t begin_ = 0;  // of the own part, in bytes
  size_t bytes_ = 0;
};

// An alltoallv in which most counts are zero.
class Exchange final : public Base {
 public:
  Exchange(const std::shared_ptr<Context>& context, size_t bytes,
           const std::vector<int>& peers)
      : Base(context, {}, {}), offsets_{0} {
    for (int rank = 0; rank < context->size; rank++) {
      const bool isPeer =
          std::find(peers.begin(), peers.end(), rank) != peers.end();
      offsets_.push_back(offsets_.back() + (isPeer ? bytes : 0));
    }
    Request request = requestOf(Collective::kAlltoallv, call_);
    request.counts.sendOffsets = request.counts.recvOffsets = offsets_.data();
    prepare(request);
    sent_ = make(offsets_.back());
    received_ = make(offsets_.back());
  }

  void runOnce() override { runPlan(sent_, received_); }

 private:
  std::vector<size_t> offsets_;
  char* sent_ = nullptr;
  char* received_ = nullptr;
};

std::vector<int> partnersOf(const Context& context, int destinations) {
  GLOO_ENFORCE(destinations > 0 && destinations < 31 &&
                   context.size % (1 << destinations) == 0,
               "pairwise exchange: ", context.size,
               " ranks cannot exchange with ", destinations,
               " destinations each; the ranks must be a multiple of two to the "
               "power of the destinations");
  std::vector<int> partners;
  partners.reserve(static_cast<size_t>(destinations));
  for (int i = 0; i < destinations; i++) {
    partners.push_back(context.rank ^ (1 << i));
  }
  return partners;
}

}  // namespace

Persistent::~Persistent() = default;

std::unique_ptr<Persistent> Persistent::allreduce(
    const std::shared_ptr<Context>& context, std::vector<void*> vectors,
    const Shape& shape, ReduceFunction function) {
  return std::make_unique<Allreduce>(context, std::move(vectors), shape,
                                     std::move(function));
}

std::unique_ptr<Persistent> Persistent::broadcast(
    const std::shared_ptr<Context>& context, std::vector<void*> vectors,
    const Shape& shape, int rootVector) {
  return std::make_unique<Broadcast>(context, std::move(vectors), shape,
                                     rootVector);
}

std::unique_ptr<Persistent> Persistent::barrier(
    const std::shared_ptr<Context>& context) {
  return std::make_unique<Barrier>(context);
}

std::unique_ptr<Persistent> Persistent::allgather(
    const std::shared_ptr<Context>& context, std::vector<const void*> inputs,
    void* output, const Shape& shape) {
  return std::make_unique<Allgather>(context, std::move(inputs), output, shape);
}

std::unique_ptr<Persistent> Persistent::reduceScatter(
    const std::shared_ptr<Context>& context, std::vector<void*> vectors,
    const Shape& shape, const std::vector<int>& counts,
    ReduceFunction function) {
  return std::make_unique<ReduceScatter>(context, std::move(vectors), shape,
                                         counts, std::move(function));
}

std::unique_ptr<Persistent> Persistent::exchange(
    const std::shared_ptr<Context>& context, int bytes, int destinations) {
  const std::vector<int> partners = partnersOf(*context, destinations);
  GLOO_ENFORCE(bytes >= destinations,
               "pairwise exchange: less than a byte for each of ", destinations,
               " destinations");
  return std::make_unique<Exchange>(
      context, static_cast<size_t>(bytes / destinations), partners);
}

}  // namespace internal

PairwiseExchange::PairwiseExchange(const std::shared_ptr<Context>& context,
                                   int numBytes, int numDestinations)
    : Algorithm(context),
      persistent_(
          internal::Persistent::exchange(context, numBytes, numDestinations)) {}
PairwiseExchange::~PairwiseExchange() noexcept(false) = default;
void PairwiseExchange::run() { persistent_->run(); }

GLOO_NAMESPACE_END
