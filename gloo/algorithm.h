// Base of the collectives that are objects: constructed once, run often.
#pragma once

#include <cstddef>
#include <memory>

#include "gloo/common/logging.h"
#include "gloo/context.h"
#include "gloo/math.h"

GLOO_NAMESPACE_BEGIN

// Accepted, without effect: collectives work on host memory.
constexpr size_t kOnDeviceThreshold = 256 * 1024;

// One thread at a time.
class GLOO_API Algorithm {
 public:
  explicit Algorithm(const std::shared_ptr<Context>& context);
  // May throw: derived classes wait for operations in flight.
  virtual ~Algorithm() noexcept(false);

  virtual void run() = 0;

 protected:
  std::shared_ptr<Context> context_;
  const int contextRank_;
  const int contextSize_;

  std::unique_ptr<transport::Pair>& getPair(int i);
  // Ranks as a ring: the left neighbour is the rank before the own.
  std::unique_ptr<transport::Pair>& getLeftPair();
  std::unique_ptr<transport::Pair>& getRightPair();
};

enum ReductionType {
  SUM = 1,
  PRODUCT = 2,
  MAX = 3,
  MIN = 4,
  // Numbers from here on are the callers'.
  CUSTOM = 1000,
};

// A reduction and what it is called. Immutable; thread-safe.
template <typename T>
class ReductionFunction {
 public:
  using Function = void(T*, const T*, size_t);

  static const ReductionFunction<T>* const sum;
  static const ReductionFunction<T>* const product;
  static const ReductionFunction<T>* const min;
  static const ReductionFunction<T>* const max;

  constexpr ReductionFunction(ReductionType type, Function* function)
      : type_(type), function_(function) {}

  ReductionType type() const { return type_; }

  // a[i] = a[i] op b[i] for 0 <= i < n.
  void call(T* a, const T* b, size_t n) const { function_(a, b, n); }

 private:
  const ReductionType type_;
  Function* const function_;
};

namespace algorithm_detail {
template <typename T>
inline constexpr ReductionFunction<T> kSum{SUM, &::gloo::sum<T>};
template <typename T>
inline constexpr ReductionFunction<T> kProduct{PRODUCT, &::gloo::product<T>};
template <typename T>
inline constexpr ReductionFunction<T> kMin{MIN, &::gloo::min<T>};
template <typename T>
inline constexpr ReductionFunction<T> kMax{MAX, &::gloo::max<T>};
}  // namespace algorithm_detail

template <typename T>
const ReductionFunction<T>* const ReductionFunction<T>::sum =
    &algorithm_detail::kSum<T>;
template <typename T>
const ReductionFunction<T>* const ReductionFunction<T>::product =
    &algorithm_detail::kProduct<T>;
template <typename T>
const ReductionFunction<T>* const ReductionFunction<T>::min =
    &algorithm_detail::kMin<T>;
template <typename T>
const ReductionFunction<T>* const ReductionFunction<T>::max =
    &algorithm_detail::kMax<T>;

// A reduction or broadcast among the buffers of this process. One thread.
template <typename T>
class LocalOp {
 public:
  virtual ~LocalOp() noexcept(false) = default;

  virtual void runAsync() = 0;
  virtual void wait() = 0;

  void run() {
    runAsync();
    wait();
  }
};

GLOO_NAMESPACE_END
