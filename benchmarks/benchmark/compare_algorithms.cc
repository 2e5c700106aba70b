#include "benchmarks/benchmark/compare_algorithms.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace benchmark {
namespace {

// What the library's choice may cost more than the best algorithm.
constexpr double kTolerance = 1.10;

class Comparison {
 public:
  explicit Comparison(const Options& options) : options_(options) {}

  void header(const Entry& entry, const std::vector<Contestant>& row) const {
    std::printf("\n%s, %d ranks, %s; us\n%12s", entry.collective.c_str(),
                options_.size, options_.transport.c_str(), "size (B)");
    for (const auto& contestant : row) {
      std::printf(" %18s", contestant.name.c_str());
    }
    std::printf("  auto / best\n");
  }

  void add(const Entry& entry, size_t bytes,
           const std::vector<Contestant>& row) {
    const auto best = std::min_element(
        row.begin() + 1, row.end(),
        [](const Contestant& a, const Contestant& b) { return a.us < b.us; });
    const double ratio = row[0].us / best->us;
    std::printf("%12zu", bytes);
    for (const auto& contestant : row) {
      std::printf(" %18.2f", contestant.us);
      rows_.push_back({{"collective", entry.collective},
                       {"transport", options_.transport},
                       {"ranks", options_.size},
                       {"bytes", bytes},
                       {"algorithm", contestant.name},
                       {"us", contestant.us}});
    }
    std::printf("  %.2f%s\n", ratio,
                ratio > kTolerance ? (" " + best->name).c_str() : "");
    std::fflush(stdout);
    sizes_++;
    slower_ += ratio > kTolerance ? 1 : 0;
  }

  void finish() const {
    std::printf("\nauto is over 10 %% slower than the best at %d of %d sizes\n",
                slower_, sizes_);
    if (options_.jsonFile.empty()) {
      return;
    }
    std::ofstream file(options_.jsonFile);
    file << rows_.dump(1) << "\n";
    file.close();
    if (!file) {
      throw std::runtime_error("cannot write " + options_.jsonFile + ": " +
                               std::strerror(errno));
    }
  }

 private:
  const Options& options_;
  nlohmann::json rows_ = nlohmann::json::array();
  int sizes_ = 0;
  int slower_ = 0;
};

}  // namespace

void compareAlgorithms(const Options& options, Contest& contest) {
  Comparison comparison(options);
  const bool tells = options.rank == 0;
  for (const Entry* entry : contest.entries()) {
    bool first = true;
    for (const size_t bytes : contest.sizes()) {
      const size_t elements = contest.elementsFor(*entry, bytes);
      if (elements == 0) {
        continue;
      }
      const auto row = contest.measure(*entry, elements);
      if (tells && first) {
        comparison.header(*entry, row);
      }
      if (tells) {
        comparison.add(*entry, contest.bytesOf(*entry, elements), row);
      }
      first = false;
    }
  }
  if (tells) {
    comparison.finish();
  }
}

}  // namespace benchmark
