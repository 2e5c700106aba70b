// Broadcast, reduce, scatter, barriers: benchmarks with a root, or without
// data.
#include "benchmarks/benchmark/vectors.h"
#include "gloo/barrier.h"
#include "gloo/barrier_all_to_all.h"
#include "gloo/barrier_all_to_one.h"
#include "gloo/broadcast.h"
#include "gloo/broadcast_one_to_all.h"
#include "gloo/gather.h"
#include "gloo/math.h"
#include "gloo/reduce.h"
#include "gloo/scatter.h"

namespace benchmark {
namespace {

constexpr int kRoot = 0;

Traffic once(int, const Options&) { return {1, 1}; }
Traffic nothing(int, const Options&) { return {0, 0}; }
Traffic blocks(int size, const Options&) {
  return {double(size), double(size - 1) / size};
}

template <typename T>
class Broadcast : public VectorBenchmark<T> {
 public:
  explicit Broadcast(const Setup& setup)
      : VectorBenchmark<T>(setup), broadcastOptions_(setup.context) {
    broadcastOptions_.setOutput(this->addInPlace()[0], this->elements_);
    broadcastOptions_.setRoot(kRoot);
  }
  void run() override { gloo::broadcast(broadcastOptions_); }

 protected:
  void expect(Checker<T>& checker) const override {
    checker.isInput(this->results()[0], kRoot, 0);
  }

 private:
  gloo::BroadcastOptions broadcastOptions_;
};

class Barrier : public VectorBenchmark<float> {
 public:
  explicit Barrier(const Setup& setup)
      : VectorBenchmark(setup), barrierOptions_(setup.context) {}
  void run() override { gloo::barrier(barrierOptions_); }

 protected:
  void expect(Checker<float>&) const override {}

 private:
  gloo::BarrierOptions barrierOptions_;
};

template <typename T>
class Reduce : public VectorBenchmark<T> {
 public:
  explicit Reduce(const Setup& setup)
      : VectorBenchmark<T>(setup), reduceOptions_(setup.context) {
    void (*const sum)(void*, const void*, const void*, size_t) = &gloo::sum<T>;
    reduceOptions_.setInput(this->addInput(this->elements_), this->elements_);
    reduceOptions_.setOutput(this->addOutput(this->elements_), this->elements_);
    reduceOptions_.setRoot(kRoot);
    reduceOptions_.setReduceFunction(sum);
  }
  void run() override { gloo::reduce(reduceOptions_); }

 protected:
  void expect(Checker<T>& checker) const override {
    if (this->rank() == kRoot) {
      checker.isSum(this->results()[0]);
    }
  }

 private:
  gloo::ReduceOptions reduceOptions_;
};

template <typename T>
class Scatter : public VectorBenchmark<T> {
 public:
  explicit Scatter(const Setup& setup)
      : VectorBenchmark<T>(setup), scatterOptions_(setup.context) {
    if (this->rank() == kRoot) {
      std::vector<T*> parts;
      for (int i = 0; i < this->size(); i++) {
        parts.push_back(this->addInput(this->elements_));
      }
      scatterOptions_.setInputs(parts, this->elements_);
    }
    scatterOptions_.setOutput(this->addOutput(this->elements_),
                              this->elements_);
    scatterOptions_.setRoot(kRoot);
  }
  void run() override { gloo::scatter(scatterOptions_); }

 protected:
  void expect(Checker<T>& checker) const override {
    checker.isInput(this->results()[0], kRoot, this->rank());
  }

 private:
  gloo::ScatterOptions scatterOptions_;
};

template <typename T>
class Gather : public VectorBenchmark<T> {
 public:
  explicit Gather(const Setup& setup)
      : VectorBenchmark<T>(setup), gatherOptions_(setup.context) {
    gatherOptions_.setInput(this->addInput(this->elements_), this->elements_);
    if (this->rank() == kRoot) {
      const size_t all = this->elements_ * size_t(this->size());
      gatherOptions_.setOutput(this->addOutput(all), all);
    }
    gatherOptions_.setRoot(kRoot);
  }
  void run() override { gloo::gather(gatherOptions_); }

 protected:
  void expect(Checker<T>& checker) const override {
    for (int from = 0; this->rank() == kRoot && from < this->size(); from++) {
      checker.isInput(this->results()[0].subspan(this->elements_ * size_t(from),
                                                 this->elements_),
                      from, 0);
    }
  }

 private:
  gloo::GatherOptions gatherOptions_;
};

template <typename T>
class BroadcastOneToAll : public VectorBenchmark<T> {
 public:
  explicit BroadcastOneToAll(const Setup& setup)
      : VectorBenchmark<T>(setup),
        algorithm_(std::make_unique<gloo::BroadcastOneToAll<T>>(
            setup.context, this->addInPlace(), this->elements_, kRoot)) {}
  void run() override { algorithm_->run(); }

 protected:
  void expect(Checker<T>& checker) const override {
    for (const auto& result : this->results()) {
      checker.isInput(result, kRoot, 0);
    }
  }

 private:
  const std::unique_ptr<gloo::BroadcastOneToAll<T>> algorithm_;
};

template <typename Class>
class ClassBarrier : public VectorBenchmark<float> {
 public:
  explicit ClassBarrier(const Setup& setup)
      : VectorBenchmark(setup),
        algorithm_(std::make_unique<Class>(setup.context)) {}
  void run() override { algorithm_->run(); }

 protected:
  void expect(Checker<float>&) const override {}

 private:
  const std::unique_ptr<Class> algorithm_;
};

template <template <typename> typename B>
void enable(Entry& entry, TrafficOf traffic) {
  entry.makeFloat = make<B<float>>;
  entry.makeHalf = make<B<gloo::float16>>;
  entry.traffic = traffic;
}

// Of no elements, whatever their type.
template <typename B>
void enableBarrier(Entry& entry) {
  entry.makeFloat = entry.makeHalf = make<B>;
  entry.traffic = nothing;
  entry.hasResults = false;
}

}  // namespace

std::vector<Entry> oneToAllBenchmarks() {
  Entry broadcast{.name = "broadcast", .help = "from rank 0"};
  Entry gather{.name = "gather", .help = "to rank 0; elements per rank"};
  Entry barrier{.name = "barrier", .help = "", .hasSizes = false};
  Entry reduce{.name = "reduce", .help = "to rank 0"};
  Entry scatter{.name = "scatter", .help = "from rank 0; elements per rank"};
  Entry oneToAll{.name = "broadcast_one_to_all", .help = "class API"};
  Entry allToAll{
      .name = "barrier_all_to_all", .help = "class API", .hasSizes = false};
  Entry allToOne{
      .name = "barrier_all_to_one", .help = "class API", .hasSizes = false};
  enable<Broadcast>(broadcast, once);
  enableBarrier<Barrier>(barrier);
  enable<Reduce>(reduce, once);
  reduce.sums = true;
  enable<Scatter>(scatter, blocks);
  enable<Gather>(gather, blocks);
  for (Entry* entry : {&broadcast, &reduce, &scatter, &gather}) {
    entry->collective = entry->name;
  }
  enable<BroadcastOneToAll>(oneToAll, once);
  oneToAll.anyInputs = true;
  enableBarrier<ClassBarrier<gloo::BarrierAllToAll>>(allToAll);
  enableBarrier<ClassBarrier<gloo::BarrierAllToOne>>(allToOne);
  return {broadcast, barrier,  reduce,   gather,
          scatter,   oneToAll, allToAll, allToOne};
}

}  // namespace benchmark
