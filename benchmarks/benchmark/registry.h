// The benchmarks by name.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/benchmark/options.h"
#include "gloo/context.h"

namespace benchmark {

// What a benchmark is made for: one size on one context.
struct Setup {
  std::shared_ptr<gloo::Context> context;
  const Options* options;
  size_t elements;
};

// One benchmark at one size. run() is what is timed. One thread.
class Benchmark {
 public:
  virtual ~Benchmark() = default;
  // Writes every input anew; what the iteration must give follows from it.
  virtual void fill(size_t iteration) = 0;
  virtual void run() = 0;
  // Reads a value of each cache line of the results.
  virtual void touch() const = 0;
  // What is wrong with the results of fill(iteration) and run(); or empty.
  virtual std::string check(size_t iteration) const = 0;
};

using Make = std::unique_ptr<Benchmark> (*)(const Setup&);

// How many bytes count, as multiples of the vector's: `algorithm` of them are
// the operation's work, of which `bus` pass the busiest rank's link each way.
struct Traffic {
  double algorithm = 1;
  double bus = 1;
};
using TrafficOf = Traffic (*)(int size, const Options& options);

// How many equal parts a vector is cut into.
using PartsOf = size_t (*)(int size, const Options& options);

// What a class takes as an int: no more than INT_MAX of them can be asked for.
enum class InInt { kNothing, kElements, kBytes };

struct Entry {
  std::string name;
  std::string help;
  Make makeFloat = nullptr;
  Make makeHalf = nullptr;  // --halfprecision
  TrafficOf traffic = nullptr;
  bool hasSizes = true;    // false: nothing is transferred, as in a barrier
  bool hasResults = true;  // false: there is nothing that could be checked
  bool sums = false;       // over the ranks
  InInt inInt = InInt::kNothing;
  bool anyInputs = false;
  // Of the options that only some benchmarks have, those of this one.
  std::vector<std::string> ownOptions;
  int minRanks = 1;
  PartsOf parts = nullptr;  // null: one
  // Of which algorithms may be compared, as in GLOO_ALGORITHM; empty: none.
  std::string collective;
};

const std::vector<Entry>& allBenchmarks();
const Entry* findBenchmark(const std::string& name);
size_t partsOf(const Entry& entry, int size, const Options& options);
// As many of the elements as the parts have, equally many each: 0 if they are
// fewer than the parts.
size_t equalParts(const Entry& entry, int size, const Options& options,
                  size_t elements);
// For --help.
std::string describeBenchmarks();

// Each family's part of the list.
std::vector<Entry> allreduceBenchmarks();
std::vector<Entry> oneToAllBenchmarks();
std::vector<Entry> exchangeBenchmarks();
std::vector<Entry> messageBenchmarks();

}  // namespace benchmark
