#include "gloo/allreduce.h"

#include "benchmarks/benchmark/vectors.h"
#include "gloo/allreduce_bcube.h"
#include "gloo/allreduce_halving_doubling.h"
#include "gloo/allreduce_local.h"
#include "gloo/allreduce_ring.h"
#include "gloo/allreduce_ring_chunked.h"
#include "gloo/math.h"

namespace benchmark {
namespace {

// --inputs are summed up within a rank first: one vector is what ranks
// exchange.
Traffic traffic(int size, const Options&) {
  return {1, 2.0 * (size - 1) / size};
}
Traffic withinRanks(int, const Options&) { return {1, 0}; }

template <typename T, gloo::AllreduceOptions::Algorithm kAlgorithm>
class NewAllreduce : public VectorBenchmark<T> {
 public:
  explicit NewAllreduce(const Setup& setup)
      : VectorBenchmark<T>(setup), allreduceOptions_(setup.context) {
    void (*const sum)(void*, const void*, const void*, size_t) = &gloo::sum<T>;
    allreduceOptions_.setOutputs(this->addInPlace(), this->elements_);
    allreduceOptions_.setReduceFunction(sum);
    allreduceOptions_.setAlgorithm(kAlgorithm);
  }

  void run() override { gloo::allreduce(allreduceOptions_); }

 protected:
  void expect(Checker<T>& checker) const override {
    for (const auto& result : this->results()) {
      checker.isSum(result);
    }
  }

 private:
  gloo::AllreduceOptions allreduceOptions_;
};

template <gloo::AllreduceOptions::Algorithm kAlgorithm>
Entry newAllreduce(const char* name, const char* help) {
  return {.name = name,
          .help = help,
          .makeFloat = make<NewAllreduce<float, kAlgorithm>>,
          .makeHalf = make<NewAllreduce<gloo::float16, kAlgorithm>>,
          .traffic = traffic,
          .sums = true,
          .anyInputs = true};
}

template <typename T, template <typename> typename Class>
class ClassAllreduce : public VectorBenchmark<T> {
 public:
  explicit ClassAllreduce(const Setup& setup)
      : VectorBenchmark<T>(setup),
        algorithm_(std::make_unique<Class<T>>(setup.context, this->addInPlace(),
                                              int(setup.elements))) {}

  void run() override { algorithm_->run(); }

 protected:
  void expect(Checker<T>& checker) const override {
    for (const auto& result : this->results()) {
      checker.isSum(result);
    }
  }

 private:
  const std::unique_ptr<Class<T>> algorithm_;
};

template <typename T>
class LocalAllreduce : public ClassAllreduce<T, gloo::AllreduceLocal> {
 public:
  using ClassAllreduce<T, gloo::AllreduceLocal>::ClassAllreduce;

 protected:
  void expect(Checker<T>& checker) const override {
    for (const auto& result : this->results()) {
      checker.isLocalSum(result, this->rank());
    }
  }
};

template <template <typename> typename Class>
Entry classAllreduce(const char* name, const char* help) {
  return {.name = name,
          .help = help,
          .makeFloat = make<ClassAllreduce<float, Class>>,
          .makeHalf = make<ClassAllreduce<gloo::float16, Class>>,
          .traffic = traffic,
          .sums = true,
          .inInt = InInt::kElements,
          .anyInputs = true};
}

}  // namespace

std::vector<Entry> allreduceBenchmarks() {
  using Options = gloo::AllreduceOptions;
  std::vector<Entry> entries = {
      newAllreduce<Options::Algorithm::UNSPECIFIED>(
          "allreduce", "the algorithm that the library chooses"),
      newAllreduce<Options::Algorithm::RING>("new_allreduce_ring",
                                             "segmented ring"),
      newAllreduce<Options::Algorithm::BCUBE>("new_allreduce_bcube",
                                              "bcube of radix --base"),
  };
  entries.front().collective = "allreduce";
  entries.front().ownOptions = entries.back().ownOptions = {"--base"};
  entries.push_back(
      classAllreduce<gloo::AllreduceRing>("allreduce_ring", "class API"));
  entries.push_back(classAllreduce<gloo::AllreduceRingChunked>(
      "allreduce_ring_chunked", "class API"));
  entries.push_back(classAllreduce<gloo::AllreduceHalvingDoubling>(
      "allreduce_halving_doubling", "class API"));
  entries.push_back(
      classAllreduce<gloo::AllreduceBcube>("allreduce_bcube", "class API"));
  entries.back().ownOptions = {"--base"};
  entries.push_back({.name = "allreduce_local",
                     .help = "class API; within each rank",
                     .makeFloat = make<LocalAllreduce<float>>,
                     .makeHalf = make<LocalAllreduce<gloo::float16>>,
                     .traffic = withinRanks,
                     .inInt = InInt::kElements,
                     .anyInputs = true});
  return entries;
}

}  // namespace benchmark
