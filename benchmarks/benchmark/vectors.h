// The memory of a benchmark: input vectors that are rewritten before each run,
// and results that are read after it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/benchmark/registry.h"
#include "benchmarks/benchmark/values.h"

namespace benchmark {

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
      fillInput(std::span<T>(inputs_[i]), context_->rank, int(i), iteration);
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
    inputs_.emplace_back(elements);
    return inputs_.back().data();
  }
  // Read after each run; not for inputs that are no results.
  T* addOutput(size_t elements) {
    outputs_.emplace_back(elements);
    addResult(outputs_.back());
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
      addResult(input);
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
  std::vector<std::vector<T>> inputs_;
  std::vector<std::vector<T>> outputs_;
  std::vector<std::span<const T>> results_;
};

template <typename B>
std::unique_ptr<Benchmark> make(const Setup& setup) {
  return std::make_unique<B>(setup);
}

}  // namespace benchmark
