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

Traffic once(int) { return {1, 1}; }
Traffic nothing(int) { return {0, 0}; }
Traffic blocks(int size) { return {double(size), double(size - 1) / size}; }

class Broadcast : public VectorBenchmark<float> {
 public:
  explicit Broadcast(const Setup& setup)
      : VectorBenchmark(setup), broadcastOptions_(setup.context) {
    broadcastOptions_.setOutput(addInPlace()[0], elements_);
    broadcastOptions_.setRoot(kRoot);
  }
  void run() override { gloo::broadcast(broadcastOptions_); }

 protected:
  void expect(Checker<float>& checker) const override {
    checker.isInput(results()[0], kRoot, 0);
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

class Reduce : public VectorBenchmark<float> {
 public:
  explicit Reduce(const Setup& setup)
      : VectorBenchmark(setup), reduceOptions_(setup.context) {
    void (*const sum)(void*, const void*, const void*, size_t) =
        &gloo::sum<float>;
    reduceOptions_.setInput(addInput(elements_), elements_);
    reduceOptions_.setOutput(addOutput(elements_), elements_);
    reduceOptions_.setRoot(kRoot);
    reduceOptions_.setReduceFunction(sum);
  }
  void run() override { gloo::reduce(reduceOptions_); }

 protected:
  void expect(Checker<float>& checker) const override {
    if (rank() == kRoot) {
      checker.isSum(results()[0]);
    }
  }

 private:
  gloo::ReduceOptions reduceOptions_;
};

class Scatter : public VectorBenchmark<float> {
 public:
  explicit Scatter(const Setup& setup)
      : VectorBenchmark(setup), scatterOptions_(setup.context) {
    if (rank() == kRoot) {
      std::vector<float*> parts;
      for (int i = 0; i < size(); i++) {
        parts.push_back(addInput(elements_));
      }
      scatterOptions_.setInputs(parts, elements_);
    }
    scatterOptions_.setOutput(addOutput(elements_), elements_);
    scatterOptions_.setRoot(kRoot);
  }
  void run() override { gloo::scatter(scatterOptions_); }

 protected:
  void expect(Checker<float>& checker) const override {
    checker.isInput(results()[0], kRoot, rank());
  }

 private:
  gloo::ScatterOptions scatterOptions_;
};

class Gather : public VectorBenchmark<float> {
 public:
  explicit Gather(const Setup& setup)
      : VectorBenchmark(setup), gatherOptions_(setup.context) {
    gatherOptions_.setInput(addInput(elements_), elements_);
    if (rank() == kRoot) {
      const size_t all = elements_ * size_t(size());
      gatherOptions_.setOutput(addOutput(all), all);
    }
    gatherOptions_.setRoot(kRoot);
  }
  void run() override { gloo::gather(gatherOptions_); }

 protected:
  void expect(Checker<float>& checker) const override {
    for (int from = 0; rank() == kRoot && from < size(); from++) {
      checker.isInput(results()[0].subspan(elements_ * size_t(from), elements_),
                      from, 0);
    }
  }

 private:
  gloo::GatherOptions gatherOptions_;
};

class BroadcastOneToAll : public VectorBenchmark<float> {
 public:
  explicit BroadcastOneToAll(const Setup& setup)
      : VectorBenchmark(setup),
        algorithm_(std::make_unique<gloo::BroadcastOneToAll<float>>(
            setup.context, addInPlace(), elements_, kRoot)) {}
  void run() override { algorithm_->run(); }

 protected:
  void expect(Checker<float>& checker) const override {
    for (const auto& result : results()) {
      checker.isInput(result, kRoot, 0);
    }
  }

 private:
  const std::unique_ptr<gloo::BroadcastOneToAll<float>> algorithm_;
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

template <typename B>
void enable(Entry& entry, TrafficOf traffic) {
  entry.makeFloat = make<B>;
  entry.traffic = traffic;
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
  enable<Barrier>(barrier, nothing);
  enable<Reduce>(reduce, once);
  enable<Scatter>(scatter, blocks);
  enable<Gather>(gather, blocks);
  for (Entry* entry : {&broadcast, &reduce, &scatter, &gather}) {
    entry->collective = entry->name;
  }
  enable<BroadcastOneToAll>(oneToAll, once);
  oneToAll.anyInputs = true;
  enable<ClassBarrier<gloo::BarrierAllToAll>>(allToAll, nothing);
  enable<ClassBarrier<gloo::BarrierAllToOne>>(allToOne, nothing);
  return {broadcast, barrier,  reduce,   gather,
          scatter,   oneToAll, allToAll, allToOne};
}

}  // namespace benchmark
