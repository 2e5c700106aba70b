// The algorithms of a collective against each other and against the library's
// choice, turn by turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/benchmark/options.h"
#include "benchmarks/benchmark/registry.h"
#include "benchmarks/benchmark/turns.h"
#include "benchmarks/compare/harness/page.h"
#include "gloo/allreduce.h"
#include "gloo/context.h"
#include "gloo/rendezvous/store.h"
#include "gloo/transport/device.h"

namespace benchmark {

// "auto", the library's choice, or an algorithm.
struct Contestant {
  std::string name;
  // The time of an iteration is that of the slowest rank: who can go on early
  // is of no use to the others. That of a turn is the median of its iterations.
  // "auto": the median of its turns. An algorithm: so many times that as the
  // median round says (Turns::ratio).
  double us = 0;
};

// The part of one rank: all ranks make the same calls in the same order. One
// thread.
class Contest {
 public:
  // Connects the context of control().
  Contest(const Options& options,
          std::shared_ptr<gloo::transport::Device> device,
          std::shared_ptr<gloo::rendezvous::Store> store);
  ~Contest();
  Contest(const Contest&) = delete;
  Contest& operator=(const Contest&) = delete;

  // Another context, made with this environment variable, which is unset then.
  std::shared_ptr<gloo::Context> connect(const std::string& variable,
                                         const std::string& value);

  // The benchmarks that take part: that of --name, or all that have algorithms.
  std::vector<const Entry*> entries() const;

  // The sizes at which they do, in bytes of all that the operation is about:
  // 4 B to --largest by powers of four.
  std::vector<size_t> sizes() const;

  // Elements of the benchmark for so many bytes in total, or a few less, so
  // that all ranks have equally many; 0: too few.
  size_t elementsFor(const Entry& entry, size_t bytes) const;

  // What the operation is about then.
  size_t bytesOf(const Entry& entry, size_t elements) const;

  // auto, then every algorithm; equal on all ranks. Where auto seems to be
  // slower than the best algorithm, these two are measured once more, alone,
  // and what that says counts. The first call connects
  // contexts that are alike but for what GLOO_ALGORITHM, which it sets and
  // unsets, asks of them. Throws if a result is wrong.
  std::vector<Contestant> measure(const Entry& entry, size_t elements);

  // The same for contexts of the caller's.
  std::vector<double> measure(
      const Entry& entry, size_t elements,
      const std::vector<std::shared_ptr<gloo::Context>>& contexts);

  // Whether that collective runs in memory that all ranks have mapped, where no
  // algorithm is asked for.
  bool isDirect(const std::string& collective) const;

  // Vectors of the shared allocator from here on, or those of the options.
  void useSharedMemory(bool shared) {
    vectors_.sharedMemory = shared || options_.sharedMemory;
  }

  // For what the ranks have to agree on, and for measuring messages.
  const std::shared_ptr<gloo::Context>& control() const { return control_; }

  // The sum over the ranks of each value, in place.
  void addUp(std::vector<double>& values) const;

 private:
  void connectAll();
  void meet();
  std::vector<double> turn(const Entry& entry, size_t elements,
                           const std::shared_ptr<gloo::Context>& context,
                           size_t iterations);
  double medianOfSlowest(const Entry& entry, size_t elements,
                         const std::shared_ptr<gloo::Context>& context,
                         size_t iterations);
  void takeMost(std::vector<double>& values) const;  // of all ranks
  void combine(std::vector<double>& values,
               const gloo::AllreduceOptions::Func& function) const;
  size_t iterationsFor(double seconds) const;
  Turns playRounds(const Entry& entry, size_t elements,
                   const std::vector<std::shared_ptr<gloo::Context>>& contexts,
                   size_t rounds, size_t iterations);
  void rematch(const Entry& entry, size_t elements,
               const std::vector<std::shared_ptr<gloo::Context>>& contexts,
               std::vector<double>& us);

  const Options& options_;
  Options vectors_;  // the same, for the benchmarks
  std::shared_ptr<gloo::transport::Device> device_;
  const std::shared_ptr<gloo::rendezvous::Store> store_;
  std::vector<std::shared_ptr<gloo::Context>> all_;
  std::shared_ptr<gloo::Context> control_;
  // Of local ranks, unless they are too many.
  std::unique_ptr<measure::Page> page_;
  std::shared_ptr<gloo::Context> automatic_;
  // Number i is forced to use algorithm i of every collective.
  std::vector<std::shared_ptr<gloo::Context>> forced_;
  uint32_t draws_ = 0;  // of seats, so far
};

}  // namespace benchmark
