// What all collectives' options have in common. The classes that users name
// (AllreduceOptions, ...) are made of this one's setters.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "gloo/config.h"
#include "gloo/internal/kernels.h"
#include "gloo/transport/unbound_buffer.h"

GLOO_NAMESPACE_BEGIN
class Context;

namespace internal {

// A vector of the caller's.
struct Vector {
  void* data = nullptr;
  size_t bytes = 0;
};

// Mostly one vector, which takes no allocation.
class Vectors {
 public:
  void clear() {
    size_ = 0;
    rest_.clear();
    pointers_.clear();
  }
  void add(Vector vector) {
    if (size_ == 0) {
      first_ = vector;
    } else {
      // First what may throw: it leaves the list as it was.
      pointers_.resize(size_ + 1);
      rest_.resize(size_);
      pointers_.front() = first_.data;
      pointers_.back() = vector.data;
      rest_.back() = vector;
    }
    size_++;
  }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const Vector& operator[](size_t i) const {
    return i == 0 ? first_ : rest_[i - 1];
  }
  // One for each vector, valid until the next change.
  void* const* pointers() const {
    return rest_.empty() ? &first_.data : pointers_.data();
  }

 private:
  size_t size_ = 0;
  Vector first_;
  std::vector<Vector> rest_;
  std::vector<void*> pointers_;
};

// What the setters have gathered, for the library to read.
struct CollectiveCall {
  std::shared_ptr<Context> context;
  uint32_t tag = 0;
  std::chrono::milliseconds timeout = transport::UnboundBuffer::kUnsetTimeout;
  size_t elementSize = 0;  // bytes; 0: no vector was set
  ElementType type = ElementType::kUnknown;
  Vectors inputs;
  Vectors outputs;
  // There was a CUDA driver when a vector was set; without one there is no
  // device memory that it could lie in.
  bool mayBeOnDevice = false;
  // Of v-collectives: where each rank's elements begin; size + 1 values.
  std::vector<size_t> inputOffsets;
  std::vector<size_t> outputOffsets;
  int root = -1;
  ReduceFunction reduce;
  KnownReduction known;
  size_t maxSegmentBytes = 1024 * 1024;
  const char* algorithm = nullptr;  // a literal; null: the library chooses
  // The same where the vector is worth dividing; see algorithmFor.
  const char* algorithmOfLong = nullptr;
};

// What the library has found out about a call, for the next one like it.
class GLOO_API Prepared {
 public:
  virtual ~Prepared();

  // What it took the place of; another thread may be about to look at that.
  std::unique_ptr<const Prepared> earlier;
  int replaced = 0;  // how many
};

// A call, and what was prepared for it: gone as soon as anybody may change it.
// The const functions are thread-safe.
class ChangingCall {
 public:
  ChangingCall() = default;
  // What was prepared may refer to the call in its old place.
  ChangingCall(ChangingCall&& other) noexcept
      : call_(std::move(other.change())) {}
  ChangingCall& operator=(ChangingCall&& other) noexcept {
    if (this != &other) {
      change() = std::move(other.change());
    }
    return *this;
  }
  ~ChangingCall() { delete prepared_.load(std::memory_order_relaxed); }

  const CollectiveCall& get() const { return call_; }
  CollectiveCall& change() {
    delete prepared_.load(std::memory_order_relaxed);
    prepared_.store(nullptr, std::memory_order_relaxed);
    wasRun_.store(false, std::memory_order_relaxed);
    return call_;
  }

  // Null: nothing. Valid until the next change.
  const Prepared* prepared() const {
    return prepared_.load(std::memory_order_acquire);
  }
  // Whether something should be: not for options that serve one call.
  bool isRepeated() const {
    const bool before = wasRun_.load(std::memory_order_relaxed);
    wasRun_.store(true, std::memory_order_relaxed);
    return before;
  }
  // In place of what was, which is of no more use; but for options whose
  // context is another time and again, as what was is kept.
  void prepare(std::unique_ptr<Prepared> prepared) const {
    constexpr int kMostReplaced = 64;
    const Prepared* earlier = prepared_.load(std::memory_order_acquire);
    prepared->replaced = earlier != nullptr ? earlier->replaced + 1 : 0;
    if (prepared->replaced > kMostReplaced) {
      return;
    }
    prepared->earlier.reset(earlier);
    if (prepared_.compare_exchange_strong(earlier, prepared.get(),
                                          std::memory_order_acq_rel,
                                          std::memory_order_relaxed)) {
      (void)prepared.release();
    } else {
      (void)prepared->earlier.release();  // another thread's, now
    }
  }

 private:
  CollectiveCall call_;
  mutable std::atomic<const Prepared*> prepared_{nullptr};
  mutable std::atomic<bool> wasRun_{false};
};

// Holds no memory but the buffers it was given, until others replace them. One
// thread at a time; may be used for any number of calls.
class GLOO_API CollectiveOptions {
 public:
  explicit CollectiveOptions(const std::shared_ptr<Context>& context);
  CollectiveOptions(CollectiveOptions&&) noexcept;
  CollectiveOptions& operator=(CollectiveOptions&&) noexcept;
  ~CollectiveOptions();

  // Concurrent calls on one context need distinct tags.
  void setTag(uint32_t tag) { call_.change().tag = tag; }

  // For the whole operation; 0: none; default (UnboundBuffer::kUnsetTimeout):
  // the context's.
  void setTimeout(std::chrono::milliseconds timeout);

  const CollectiveCall& call() const { return call_.get(); }
  const ChangingCall& changing() const { return call_; }

 protected:
  using Func = ReduceFunction;
  // A std::unique_ptr goes as well. A shared one may serve many calls.
  using Buffer = std::shared_ptr<transport::UnboundBuffer>;

  template <typename T>
  void setInput(T* ptr, size_t elements) {
    add(startInputs<T>().inputs, ptr, elements);
  }
  template <typename T>
  void setInput(Buffer buffer) {
    startInputs<T>();
    addInput(std::move(buffer));
  }
  template <typename T>
  void setInputs(const std::vector<T*>& ptrs, size_t elements) {
    setInputs(ptrs.data(), ptrs.size(), elements);
  }
  template <typename T>
  void setInputs(T* const* ptrs, size_t count, size_t elements) {
    CollectiveCall& call = startInputs<T>();
    requireVectors(ptrs, count);
    for (size_t i = 0; i < count; i++) {
      add(call.inputs, ptrs[i], elements);
    }
  }
  // Of std::unique_ptr or std::shared_ptr.
  template <typename T, typename Pointer>
  void setInputs(std::vector<Pointer> buffers) {
    startInputs<T>();
    for (Pointer& buffer : buffers) {
      addInput(std::move(buffer));
    }
  }

  template <typename T>
  void setOutput(T* ptr, size_t elements) {
    add(startOutputs<T>().outputs, ptr, elements);
  }
  template <typename T>
  void setOutput(Buffer buffer) {
    startOutputs<T>();
    addOutput(std::move(buffer));
  }
  template <typename T>
  void setOutputs(const std::vector<T*>& ptrs, size_t elements) {
    setOutputs(ptrs.data(), ptrs.size(), elements);
  }
  template <typename T>
  void setOutputs(T* const* ptrs, size_t count, size_t elements) {
    CollectiveCall& call = startOutputs<T>();
    requireVectors(ptrs, count);
    for (size_t i = 0; i < count; i++) {
      add(call.outputs, ptrs[i], elements);
    }
  }
  template <typename T, typename Pointer>
  void setOutputs(std::vector<Pointer> buffers) {
    startOutputs<T>();
    for (Pointer& buffer : buffers) {
      addOutput(std::move(buffer));
    }
  }

  // Of v-collectives: elements for (or from) each rank. Count is size_t or
  // int64_t.
  template <typename T, typename Count>
  void setCountedInput(T* ptr, const std::vector<Count>& counts) {
    CollectiveCall& call = startInputs<T>();
    add(call.inputs, ptr, setOffsets<T>(call.inputOffsets, counts));
  }
  template <typename T, typename Count>
  void setCountedInput(Buffer buffer, const std::vector<Count>& counts) {
    setOffsets<T>(startInputs<T>().inputOffsets, counts);
    addInput(std::move(buffer));
  }
  template <typename T, typename Count>
  void setCountedOutput(T* ptr, const std::vector<Count>& counts) {
    CollectiveCall& call = startOutputs<T>();
    add(call.outputs, ptr, setOffsets<T>(call.outputOffsets, counts));
  }
  template <typename T, typename Count>
  void setCountedOutput(Buffer buffer, const std::vector<Count>& counts) {
    setOffsets<T>(startOutputs<T>().outputOffsets, counts);
    addOutput(std::move(buffer));
  }

  void setRoot(int root) { call_.change().root = root; }

  // Associative and commutative: called as fn(c, a, b, n), c may be a or b. All
  // are aligned as elements are, if the caller's vectors are.
  void setReduceFunction(Func fn);
  // setReduceFunction(gloo::average<T>)
  void setReduceFunction(AverageOf average);

  // Longest message into which the operation is cut, in bytes (1 MiB unless
  // set); equal on all ranks. One element at least: so is 0.
  void setMaxSegmentSize(size_t bytes);

  void setAlgorithmName(const char* literal) {
    call_.change().algorithm = literal;
  }
  void setAlgorithmOfLong(const char* literal) {
    call_.change().algorithmOfLong = literal;
  }

 private:
  template <typename T>
  CollectiveCall& startInputs() {
    CollectiveCall& call = setElement(sizeof(T), elementTypeOf<T>());
    call.inputs.clear();
    call.inputOffsets.clear();
    inputBuffers_.clear();
    return call;
  }
  template <typename T>
  CollectiveCall& startOutputs() {
    CollectiveCall& call = setElement(sizeof(T), elementTypeOf<T>());
    call.outputs.clear();
    call.outputOffsets.clear();
    outputBuffers_.clear();
    return call;
  }
  static void requireVectors(const void* ptrs, size_t count);
  template <typename T>
  static void add(Vectors& vectors, T* ptr, size_t elements) {
    using Type = std::remove_cv_t<T>;
    vectors.add({const_cast<Type*>(ptr),
                 checkedElements(elements, sizeof(T)) * sizeof(T)});
  }
  template <typename T, typename Count>
  static size_t setOffsets(std::vector<size_t>& offsets,
                           const std::vector<Count>& counts) {
    offsets.assign(1, 0);
    for (const Count count : counts) {
      const size_t more = checkedElements(checkedCount(count), sizeof(T));
      offsets.push_back(checkedElements(offsets.back() + more, sizeof(T)));
    }
    return offsets.back();
  }
  // No more than there is memory for: nothing that is reckoned of it wraps, nor
  // does the sum of two.
  static size_t checkedElements(size_t elements, size_t elementSize) {
    if (elements > PTRDIFF_MAX / elementSize) {
      refuseElements(elements, elementSize);
    }
    return elements;
  }
  [[noreturn]] static void refuseElements(size_t elements, size_t elementSize);
  static size_t checkedCount(size_t count) { return count; }
  static size_t checkedCount(int64_t count);

  CollectiveCall& setElement(size_t size, ElementType type);
  void addInput(Buffer buffer);
  void addOutput(Buffer buffer);
  Vector vectorOf(const Buffer& buffer) const;

  ChangingCall call_;
  std::vector<Buffer> inputBuffers_;
  std::vector<Buffer> outputBuffers_;
};

}  // namespace internal
GLOO_NAMESPACE_END
