// Benchmarks in which every rank has a block for, or from, every other.
#include "benchmarks/benchmark/vectors.h"
#include "gloo/allgather.h"
#include "gloo/allgather_ring.h"
#include "gloo/allgatherv.h"
#include "gloo/alltoall.h"
#include "gloo/alltoallv.h"
#include "gloo/pairwise_exchange.h"
#include "gloo/reduce_scatter.h"

namespace benchmark {
namespace {

double othersShare(int size) { return double(size - 1) / size; }
// elements are those of one block, of which each rank has one per rank.
Traffic blocks(int size) { return {double(size), othersShare(size)}; }
Traffic whole(int size) { return {1, othersShare(size)}; }

// The output holds each rank's inputs one after another.
class GatherShape : public VectorBenchmark<float> {
 public:
  using VectorBenchmark::VectorBenchmark;

 protected:
  float* addGathered() {
    return addOutput(elements_ * size_t(size()) * size_t(options_.inputs));
  }
  void expect(Checker<float>& checker) const override {
    for (int i = 0; i < size() * options_.inputs; i++) {
      checker.isInput(results()[0].subspan(elements_ * size_t(i), elements_),
                      i / options_.inputs, i % options_.inputs);
    }
  }
};

class Allgather : public GatherShape {
 public:
  explicit Allgather(const Setup& setup)
      : GatherShape(setup), allgatherOptions_(setup.context) {
    allgatherOptions_.setInput(addInput(elements_), elements_);
    allgatherOptions_.setOutput(addGathered(), elements_ * size_t(size()));
  }
  void run() override { gloo::allgather(allgatherOptions_); }

 private:
  gloo::AllgatherOptions allgatherOptions_;
};

class Allgatherv : public GatherShape {
 public:
  explicit Allgatherv(const Setup& setup)
      : GatherShape(setup), allgathervOptions_(setup.context) {
    allgathervOptions_.setInput(addInput(elements_), elements_);
    allgathervOptions_.setOutput(
        addGathered(), std::vector<size_t>(size_t(size()), elements_));
  }
  void run() override { gloo::allgatherv(allgathervOptions_); }

 private:
  gloo::AllgathervOptions allgathervOptions_;
};

class AllgatherRing : public GatherShape {
 public:
  explicit AllgatherRing(const Setup& setup) : GatherShape(setup) {
    std::vector<const float*> inputs;
    for (int i = 0; i < options_.inputs; i++) {
      inputs.push_back(addInput(elements_));
    }
    algorithm_ = std::make_unique<gloo::AllgatherRing<float>>(
        setup.context, inputs, addGathered(), int(elements_));
  }
  void run() override { algorithm_->run(); }

 private:
  std::unique_ptr<gloo::AllgatherRing<float>> algorithm_;
};

class AlltoallShape : public VectorBenchmark<float> {
 public:
  using VectorBenchmark::VectorBenchmark;

 protected:
  size_t total() const { return elements_ * size_t(size()); }
  void expect(Checker<float>& checker) const override {
    for (int from = 0; from < size(); from++) {
      checker.isInput(results()[0].subspan(elements_ * size_t(from), elements_),
                      from, 0, elements_ * size_t(rank()));
    }
  }
};

class Alltoall : public AlltoallShape {
 public:
  explicit Alltoall(const Setup& setup)
      : AlltoallShape(setup), alltoallOptions_(setup.context) {
    alltoallOptions_.setInput(addInput(total()), total());
    alltoallOptions_.setOutput(addOutput(total()), total());
  }
  void run() override { gloo::alltoall(alltoallOptions_); }

 private:
  gloo::AlltoallOptions alltoallOptions_;
};

class Alltoallv : public AlltoallShape {
 public:
  explicit Alltoallv(const Setup& setup)
      : AlltoallShape(setup), alltoallvOptions_(setup.context) {
    const auto block = static_cast<int64_t>(elements_);
    const std::vector<int64_t> counts(setup.context->size, block);
    alltoallvOptions_.setInput(addInput(total()), counts);
    alltoallvOptions_.setOutput(addOutput(total()), counts);
  }
  void run() override { gloo::alltoallv(alltoallvOptions_); }

 private:
  gloo::AlltoallvOptions alltoallvOptions_;
};

// Rank r's share is at the front of its vector afterwards.
class ReduceScatter : public VectorBenchmark<float> {
 public:
  explicit ReduceScatter(const Setup& setup) : VectorBenchmark(setup) {
    const size_t share = elements_ / size_t(size());
    const size_t extra = elements_ % size_t(size());
    std::vector<int> counts;
    size_t before = 0;
    for (size_t r = 0; r < size_t(size()); r++) {
      const size_t count = share + (r < extra ? 1 : 0);
      offset_ = int(r) == rank() ? before : offset_;
      counts.push_back(int(count));
      before += count;
    }
    float* data = addInput(elements_);
    addResult(std::span<const float>(data, size_t(counts[size_t(rank())])));
    algorithm_ = std::make_unique<gloo::ReduceScatterHalvingDoubling<float>>(
        setup.context, std::vector<float*>{data}, int(elements_), counts);
  }
  void run() override { algorithm_->run(); }

 protected:
  void expect(Checker<float>& checker) const override {
    checker.isSum(results()[0], offset_);
  }

 private:
  size_t offset_ = 0;
  std::unique_ptr<gloo::ReduceScatterHalvingDoubling<float>> algorithm_;
};

// The first elements, as many as are a multiple of the ranks.
class NewReduceScatter : public VectorBenchmark<float> {
 public:
  explicit NewReduceScatter(const Setup& setup)
      : VectorBenchmark(setup), scatterOptions_(setup.context) {
    void (*const sum)(void*, const void*, const void*, size_t) =
        &gloo::sum<float>;
    const size_t part = elements_ / size_t(size());
    scatterOptions_.setInput(addInput(elements_), part * size_t(size()));
    scatterOptions_.setOutput(addOutput(part), part);
    scatterOptions_.setReduceFunction(sum);
  }
  void run() override { gloo::reduce_scatter(scatterOptions_); }

 protected:
  void expect(Checker<float>& checker) const override {
    checker.isSum(results()[0], results()[0].size() * size_t(rank()));
  }

 private:
  gloo::ReduceScatterOptions scatterOptions_;
};

// Its data is its own.
class PairwiseExchange : public VectorBenchmark<float> {
 public:
  explicit PairwiseExchange(const Setup& setup)
      : VectorBenchmark(setup),
        algorithm_(std::make_unique<gloo::PairwiseExchange>(
            setup.context, int(elements_ * sizeof(float)),
            options_.destinations)) {}
  void run() override { algorithm_->run(); }

 protected:
  void expect(Checker<float>&) const override {}

 private:
  const std::unique_ptr<gloo::PairwiseExchange> algorithm_;
};

template <typename B>
void enable(Entry& entry, TrafficOf traffic) {
  entry.makeFloat = make<B>;
  entry.traffic = traffic;
}

}  // namespace

std::vector<Entry> exchangeBenchmarks() {
  Entry gather{.name = "allgather", .help = "elements per rank"};
  Entry gatherv{.name = "allgather_v", .help = "elements per rank"};
  Entry ring{.name = "allgather_ring", .help = "class API"};
  Entry all{.name = "alltoall", .help = "elements per pair of ranks"};
  Entry allv{.name = "alltoall_v", .help = "elements per pair of ranks"};
  Entry scatter{.name = "reduce_scatter", .help = "class API"};
  Entry newScatter{.name = "new_reduce_scatter", .help = "the function"};
  Entry pairwise{.name = "pairwise_exchange",
                 .help = "class API; with --destinations ranks at once",
                 .minRanks = 2};
  enable<Allgather>(gather, blocks);
  enable<Allgatherv>(gatherv, blocks);
  enable<AllgatherRing>(ring, blocks);
  ring.anyInputs = true;
  enable<Alltoall>(all, blocks);
  enable<Alltoallv>(allv, blocks);
  enable<ReduceScatter>(scatter, whole);
  enable<NewReduceScatter>(newScatter, whole);
  gather.collective = "allgather";
  gatherv.collective = "allgatherv";
  all.collective = "alltoall";
  newScatter.collective = "reduce_scatter";
  enable<PairwiseExchange>(pairwise, [](int) { return Traffic{1, 1}; });
  return {gather, gatherv, ring, all, allv, scatter, newScatter, pairwise};
}

}  // namespace benchmark
