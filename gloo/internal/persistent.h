// A collective that is prepared once and run often: what the classes of the
// older API are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "gloo/algorithm.h"
#include "gloo/common/logging.h"
#include "gloo/config.h"
#include "gloo/internal/kernels.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

// One thread at a time. Does not own the vectors, which stay in place as long
// as it lives. run() allocates nothing and looks nothing up. It belongs to the
// connections that its context had when it was made: when others have taken
// their place, run() throws InvalidOperationException.
class GLOO_API Persistent {
 public:
  // `vectors` of `bytes` each. A literal names the algorithm.
  struct Shape {
    const char* algorithm = nullptr;
    size_t elements = 0;
    size_t elementSize = 1;
    ElementType type = ElementType::kUnknown;
    int root = 0;
  };

  // vectors[0] is reduced with the others, then with those of all ranks; each
  // gets the result. Without an algorithm: among the local vectors only.
  static std::unique_ptr<Persistent> allreduce(
      const std::shared_ptr<Context>& context, std::vector<void*> vectors,
      const Shape& shape, ReduceFunction function);

  // vectors[rootVector] of the root to all vectors of all ranks.
  static std::unique_ptr<Persistent> broadcast(
      const std::shared_ptr<Context>& context, std::vector<void*> vectors,
      const Shape& shape, int rootVector);

  static std::unique_ptr<Persistent> barrier(
      const std::shared_ptr<Context>& context);

  // `inputs` of every rank (shape.elements each) one after another.
  static std::unique_ptr<Persistent> allgather(
      const std::shared_ptr<Context>& context, std::vector<const void*> inputs,
      void* output, const Shape& shape);

  // counts[rank] elements of the result end at the front of each vector.
  static std::unique_ptr<Persistent> reduceScatter(
      const std::shared_ptr<Context>& context, std::vector<void*> vectors,
      const Shape& shape, const std::vector<int>& counts,
      ReduceFunction function);

  // See PairwiseExchange.
  static std::unique_ptr<Persistent> exchange(
      const std::shared_ptr<Context>& context, int bytes, int destinations);

  virtual ~Persistent();
  virtual void run() = 0;

 protected:
  Persistent() = default;
};

// A class's typed reduction as a function of untyped memory; one of the
// built-in reductions is recognised by the library. For the types that it knows
// only: to name a reduction asks for the operator, and another type, or complex
// numbers, may not have those that the caller does without.
template <typename T>
ReduceFunction reduceFunctionOf(const ReductionFunction<T>* function) {
  using Pointer = void (*)(void*, const void*, const void*, size_t);
  using Known = ReductionFunction<T>;
  constexpr ElementType kType = elementTypeOf<T>();
  GLOO_ENFORCE(function != nullptr, "no reduce function: it is null");
  if constexpr (kType != ElementType::kUnknown) {
    if (function == Known::sum) {
      return static_cast<Pointer>(&::gloo::sum<T>);
    }
    if (function == Known::product) {
      return static_cast<Pointer>(&::gloo::product<T>);
    }
  }
  if constexpr (kType != ElementType::kUnknown && !isComplex(kType)) {
    if (function == Known::min) {
      return static_cast<Pointer>(&::gloo::min<T>);
    }
    if (function == Known::max) {
      return static_cast<Pointer>(&::gloo::max<T>);
    }
  }
  return [function](void* c, const void* a, const void* b, size_t n) {
    // call() overwrites its left operand. Where the result goes to the right
    // one, the left one is the library's own memory and may be used up.
    T* const left = static_cast<T*>(c == b ? const_cast<void*>(a) : c);
    if (left != a) {
      std::memcpy(static_cast<void*>(left), a, n * sizeof(T));
    }
    function->call(left, static_cast<const T*>(b), n);
    if (left != c) {
      std::memcpy(c, static_cast<const void*>(left), n * sizeof(T));
    }
  };
}

template <typename T>
std::vector<void*> untyped(const std::vector<T*>& ptrs) {
  return std::vector<void*>(ptrs.begin(), ptrs.end());
}

// `Count` is size_t, or int, which is refused when it is negative.
template <typename T, typename Count>
Persistent::Shape shapeOf(const char* algorithm, Count elements) {
  if constexpr (std::is_signed_v<Count>) {
    GLOO_ENFORCE(elements >= 0, "a count is negative: ", elements);
  }
  Persistent::Shape shape;
  shape.algorithm = algorithm;
  shape.elements = static_cast<size_t>(elements);
  shape.elementSize = sizeof(T);
  shape.type = elementTypeOf<T>();
  return shape;
}

// Base of the allreduce classes.
template <typename T>
class PersistentAllreduce : public Algorithm {
 public:
  void run() override { persistent_->run(); }

 protected:
  PersistentAllreduce(const char* algorithm,
                      const std::shared_ptr<Context>& context,
                      const std::vector<T*>& ptrs, int count,
                      const ReductionFunction<T>* fn)
      : Algorithm(context),
        persistent_(Persistent::allreduce(context, untyped(ptrs),
                                          shapeOf<T>(algorithm, count),
                                          reduceFunctionOf(fn))) {}

 private:
  std::unique_ptr<Persistent> persistent_;
};

}  // namespace internal
GLOO_NAMESPACE_END
