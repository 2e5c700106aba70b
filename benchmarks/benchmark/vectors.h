// The memory of a benchmark: input vectors that are rewritten before each run,
// and results that are read after it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/benchmark/registry.h"
#include "benchmarks/benchmark/values.h"
#include "gloo/transport/shm/allocate.h"

namespace benchmark {

// Ordinary memory, or that of the shared allocator.
template <typename T>
class Vector {
 public:
  Vector(size_t elements, bool isShared) : size_(elements) {
    if (isShared) {
      shared_ = gloo::transport::shm::allocate(
          std::max<size_t>(elements * sizeof(T), 1));
      data_ = static_cast<T*>(shared_.data());
    } else {
      own_.resize(elements);
      data_ = own_.data();
    }
  }
  T* data() const { return data_; }
  size_t size() const { return size_; }
  std::span<T> span() const { return {data_, size_}; }

 private:
  std::vector<T> own_;
  gloo::transport::shm::Memory shared_;
  T* data_ = nullptr;
  size_t size_ = 0;
};

// A benchmark says in expect() what must come out.
template <typename T>
class VectorBenchmark : public Benchmark {
 public:
  explicit VectorBenchmark(const Setup& setup)
      : context_(setup.context),
        options_(*setup.options),
        elements_(setup.elements) {}

  void fill(size_t iteration) override {
    for (size_t i = 0; i < inputs_.size(); i++) {
      fillInput(inputs_[i].span(), context_->rank, int(i), iteration);
    }
  }

  void touch() const override {
    constexpr size_t kPerLine = 64 / sizeof(T);
    for (const auto& result : results_) {
      const auto* data = reinterpret_cast<const char*>(result.data());
      volatile char sink = 0;  // keeps the loads
      for (size_t i = 0; i < result.size(); i += kPerLine) {
        sink = data[i * sizeof(T)];
      }
      (void)sink;
    }
  }

  std::string check(size_t iteration) const override {
    Checker<T> checker(context_->size, int(inputs_.size()), iteration,
                       options_.showAllErrors);
    expect(checker);
    return checker.errors();
  }

 protected:
  virtual void expect(Checker<T>& checker) const = 0;

  // Rewritten before each run.
  T* addInput(size_t elements) {
    inputs_.emplace_back(elements, options_.sharedMemory);
    return inputs_.back().data();
  }
  // Read after each run; not for inputs that are no results.
  T* addOutput(size_t elements) {
    outputs_.emplace_back(elements, options_.sharedMemory);
    addResult(outputs_.back().span());
    return outputs_.back().data();
  }
  void addResult(std::span<const T> result) { results_.push_back(result); }

  // --inputs vectors, which become the results in place.
  std::vector<T*> addInPlace() {
    std::vector<T*> pointers;
    for (int i = 0; i < options_.inputs; i++) {
      pointers.push_back(addInput(elements_));
    }
    for (const auto& input : inputs_) {
      addResult(input.span());
    }
    return pointers;
  }

  int size() const { return context_->size; }
  int rank() const { return context_->rank; }
  std::span<const std::span<const T>> results() const { return results_; }

  const std::shared_ptr<gloo::Context> context_;
  const Options& options_;
  const size_t elements_;

 private:
  std::vector<Vector<T>> inputs_;
  std::vector<Vector<T>> outputs_;
  std::vector<std::span<const T>> results_;
};

template <typename B>
std::unique_ptr<Benchmark> make(const Setup& setup) {
  return std::make_unique<B>(setup);
}

}  // namespace benchmark
