#include "benchmarks/benchmark/registry.h"

#include <algorithm>
#include <sstream>

namespace benchmark {

const std::vector<Entry>& allBenchmarks() {
  static const std::vector<Entry> kAll = [] {
    std::vector<Entry> all;
    for (auto* family : {&allreduceBenchmarks, &oneToAllBenchmarks,
                         &exchangeBenchmarks, &messageBenchmarks}) {
      for (auto& entry : family()) {
        all.push_back(std::move(entry));
      }
    }
    std::sort(all.begin(), all.end(),
              [](const Entry& a, const Entry& b) { return a.name < b.name; });
    return all;
  }();
  return kAll;
}

const Entry* findBenchmark(const std::string& name) {
  for (const auto& entry : allBenchmarks()) {
    if (entry.name == name) {
      return &entry;
    }
  }
  return nullptr;
}

size_t partsOf(const Entry& entry, int size, const Options& options) {
  return entry.parts != nullptr ? entry.parts(size, options) : 1;
}

size_t equalParts(const Entry& entry, int size, const Options& options,
                  size_t elements) {
  return elements - elements % partsOf(entry, size, options);
}

std::string describeBenchmarks() {
  std::ostringstream out;
  out << "Benchmarks:\n";
  for (const auto& entry : allBenchmarks()) {
    out << "  " << entry.name << std::string(28 - entry.name.size(), ' ')
        << entry.help << "\n";
  }
  return out.str();
}

}  // namespace benchmark
