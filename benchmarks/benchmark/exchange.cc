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
// elements are those of one block, of which each rank has one per rank, and of
// each of --inputs.
Traffic blocks(int size, const Options& options) {
  return {double(size) * options.inputs, othersShare(size)};
}
Traffic whole(int size, const Options&) { return {1, othersShare(size)}; }
size_t partPerRank(int size, const Options&) { return size_t(size); }
size_t partPerDestination(int, const Options& options) {
  return size_t(options.destinations);
}

// The output holds each rank's inputs one after another.
template <typename T>
class GatherShape : public VectorBenchmark<T> {
 public:
  using VectorBenchmark<T>::VectorBenchmark;

 protected:
  T* addGathered() {
    return this->addOutput(this->elements_ * size_t(this->size()) *
                           size_t(this->options_.inputs));
  }
  void expect(Checker<T>& checker) const override {
    for (int i = 0; i < this->size() * this->options_.inputs; i++) {
      checker.isInput(this->results()[0].subspan(this->elements_ * size_t(i),
                                                 this->elements_),
                      i / this->options_.inputs, i % this->options_.inputs);
    }
  }
};

template <typename T>
class Allgather : public GatherShape<T> {
 public:
  explicit Allgather(const Setup& setup)
      : GatherShape<T>(setup), allgatherOptions_(setup.context) {
    allgatherOptions_.setInput(this->addInput(this->elements_),
                               this->elements_);
    allgatherOptions_.setOutput(this->addGathered(),
                                this->elements_ * size_t(this->size()));
  }
  void run() override { gloo::allgather(allgatherOptions_); }

 private:
  gloo::AllgatherOptions allgatherOptions_;
};

template <typename T>
class Allgatherv : public GatherShape<T> {
 public:
  explicit Allgatherv(const Setup& setup)
      : GatherShape<T>(setup), allgathervOptions_(setup.context) {
    allgathervOptions_.setInput(this->addInput(this->elements_),
                                this->elements_);
    allgathervOptions_.setOutput(
        this->addGathered(),
        std::vector<size_t>(size_t(this->size()), this->elements_));
  }
  void run() override { gloo::allgatherv(allgathervOptions_); }

 private:
  gloo::AllgathervOptions allgathervOptions_;
};

template <typename T>
class AllgatherRing : public GatherShape<T> {
 public:
  explicit AllgatherRing(const Setup& setup) : GatherShape<T>(setup) {
    std::vector<const T*> inputs;
    for (int i = 0; i < this->options_.inputs; i++) {
      inputs.push_back(this->addInput(this->elements_));
    }
    algorithm_ = std::make_unique<gloo::AllgatherRing<T>>(
        setup.context, inputs, this->addGathered(), int(this->elements_));
  }
  void run() override { algorithm_->run(); }

 private:
  std::unique_ptr<gloo::AllgatherRing<T>> algorithm_;
};

template <typename T>
class AlltoallShape : public VectorBenchmark<T> {
 public:
  using VectorBenchmark<T>::VectorBenchmark;

 protected:
  size_t total() const { return this->elements_ * size_t(this->size()); }
  void expect(Checker<T>& checker) const override {
    for (int from = 0; from < this->size(); from++) {
      checker.isInput(this->results()[0].subspan(this->elements_ * size_t(from),
                                                 this->elements_),
                      from, 0, this->elements_ * size_t(this->rank()));
    }
  }
};

template <typename T>
class Alltoall : public AlltoallShape<T> {
 public:
  explicit Alltoall(const Setup& setup)
      : AlltoallShape<T>(setup), alltoallOptions_(setup.context) {
    alltoallOptions_.setInput(this->addInput(this->total()), this->total());
    alltoallOptions_.setOutput(this->addOutput(this->total()), this->total());
  }
  void run() override { gloo::alltoall(alltoallOptions_); }

 private:
  gloo::AlltoallOptions alltoallOptions_;
};

template <typename T>
class Alltoallv : public AlltoallShape<T> {
 public:
  explicit Alltoallv(const Setup& setup)
      : AlltoallShape<T>(setup), alltoallvOptions_(setup.context) {
    const auto block = static_cast<int64_t>(this->elements_);
    const std::vector<int64_t> counts(setup.context->size, block);
    alltoallvOptions_.setInput(this->addInput(this->total()), counts);
    alltoallvOptions_.setOutput(this->addOutput(this->total()), counts);
  }
  void run() override { gloo::alltoallv(alltoallvOptions_); }

 private:
  gloo::AlltoallvOptions alltoallvOptions_;
};

// Rank r's share is at the front of its vector afterwards.
template <typename T>
class ReduceScatter : public VectorBenchmark<T> {
 public:
  explicit ReduceScatter(const Setup& setup) : VectorBenchmark<T>(setup) {
    const size_t share = this->elements_ / size_t(this->size());
    const size_t extra = this->elements_ % size_t(this->size());
    std::vector<int> counts;
    size_t before = 0;
    for (size_t r = 0; r < size_t(this->size()); r++) {
      const size_t count = share + (r < extra ? 1 : 0);
      offset_ = int(r) == this->rank() ? before : offset_;
      counts.push_back(int(count));
      before += count;
    }
    T* data = this->addInput(this->elements_);
    this->addResult(
        std::span<const T>(data, size_t(counts[size_t(this->rank())])));
    algorithm_ = std::make_unique<gloo::ReduceScatterHalvingDoubling<T>>(
        setup.context, std::vector<T*>{data}, int(this->elements_), counts);
  }
  void run() override { algorithm_->run(); }

 protected:
  void expect(Checker<T>& checker) const override {
    checker.isSum(this->results()[0], offset_);
  }

 private:
  size_t offset_ = 0;
  std::unique_ptr<gloo::ReduceScatterHalvingDoubling<T>> algorithm_;
};

// Every rank has a part of its own, as long as the others'.
template <typename T>
class NewReduceScatter : public VectorBenchmark<T> {
 public:
  explicit NewReduceScatter(const Setup& setup)
      : VectorBenchmark<T>(setup), scatterOptions_(setup.context) {
    void (*const sum)(void*, const void*, const void*, size_t) = &gloo::sum<T>;
    const size_t part = this->elements_ / size_t(this->size());
    scatterOptions_.setInput(this->addInput(this->elements_), this->elements_);
    scatterOptions_.setOutput(this->addOutput(part), part);
    scatterOptions_.setReduceFunction(sum);
  }
  void run() override { gloo::reduce_scatter(scatterOptions_); }

 protected:
  void expect(Checker<T>& checker) const override {
    checker.isSum(this->results()[0],
                  this->results()[0].size() * size_t(this->rank()));
  }

 private:
  gloo::ReduceScatterOptions scatterOptions_;
};

// Its data is its own, and not to be seen from here.
template <typename T>
class PairwiseExchange : public VectorBenchmark<T> {
 public:
  explicit PairwiseExchange(const Setup& setup)
      : VectorBenchmark<T>(setup),
        algorithm_(std::make_unique<gloo::PairwiseExchange>(
            setup.context, int(this->elements_ * sizeof(T)),
            this->options_.destinations)) {}
  void run() override { algorithm_->run(); }

 protected:
  void expect(Checker<T>&) const override {}

 private:
  const std::unique_ptr<gloo::PairwiseExchange> algorithm_;
};

template <template <typename> typename B>
void enable(Entry& entry, TrafficOf traffic) {
  entry.makeFloat = make<B<float>>;
  entry.makeHalf = make<B<gloo::float16>>;
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
  ring.inInt = InInt::kElements;
  enable<Alltoall>(all, blocks);
  enable<Alltoallv>(allv, blocks);
  enable<ReduceScatter>(scatter, whole);
  enable<NewReduceScatter>(newScatter, whole);
  scatter.sums = newScatter.sums = true;
  scatter.inInt = InInt::kElements;
  gather.collective = "allgather";
  gatherv.collective = "allgatherv";
  all.collective = "alltoall";
  newScatter.collective = "reduce_scatter";
  newScatter.parts = partPerRank;
  pairwise.parts = partPerDestination;
  enable<PairwiseExchange>(pairwise, [](int, const Options&) {
    return Traffic{1, 1};
  });
  pairwise.hasResults = false;
  pairwise.inInt = InInt::kBytes;
  pairwise.ownOptions = {"--destinations"};
  return {gather, gatherv, ring, all, allv, scatter, newScatter, pairwise};
}

}  // namespace benchmark
