#include "benchmarks/benchmark/report.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "benchmarks/benchmark/registry.h"
#include "benchmarks/support/links.h"

namespace benchmark {
namespace {

constexpr auto kProgressInterval = std::chrono::milliseconds(200);

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string::npos
             ? ""
             : text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

// What GLOO_ALGORITHM ("collective=algorithm,...") asks for, or "auto". The
// last wish counts, and blanks do not, as in the library.
std::string algorithmOf(const std::string& collective) {
  const char* variable = std::getenv("GLOO_ALGORITHM");
  std::istringstream wishes(variable != nullptr ? variable : "");
  std::string algorithm = "auto";
  for (std::string wish; std::getline(wishes, wish, ',');) {
    const size_t equals = wish.find('=');
    if (equals != std::string::npos &&
        trimmed(wish.substr(0, equals)) == collective) {
      algorithm = trimmed(wish.substr(equals + 1));
    }
  }
  return algorithm;
}

}  // namespace

Report::Report(const Options& options, Conditions conditions)
    : options_(options),
      conditions_(std::move(conditions)),
      verified_(options.verify && findBenchmark(options.name)->hasResults),
      terminal_(isatty(STDERR_FILENO) == 1),
      nextProgress_(std::chrono::steady_clock::now() + kProgressInterval) {}

void Report::header() const {
  const std::string links = support::join(conditions_.links, ',');
  std::printf("Device:    %s\n", conditions_.device.c_str());
  std::printf("Benchmark: %s\n", options_.name.c_str());
  std::printf(
      "Options:   ranks=%d inputs=%d threads=%d links=%s type=%s verify=%s\n\n",
      conditions_.ranks, options_.inputs, options_.threads, links.c_str(),
      options_.halfPrecision ? "float16" : "float32", verified_ ? "yes" : "no");
  const char* unit = options_.nanos ? "ns" : "us";
  std::printf("%12s %12s %9s(%s) %9s(%s) %9s(%s) %9s(%s) %11s %11s %11s\n",
              "size (B)", "elements", "min", unit, "p50", unit, "p99", unit,
              "max", unit, "alg (GB/s)", "bus (GB/s)", "iterations");
  std::fflush(stdout);
}

void Report::add(const Row& row) {
  clearProgress();
  const double scale = options_.nanos ? 1e3 : 1;
  const int digits = options_.nanos ? 0 : 2;
  std::printf("%12zu %12zu %13.*f %13.*f %13.*f %13.*f %11.3f %11.3f %11zu\n",
              row.bytes, row.elements, digits, row.minUs * scale, digits,
              row.p50Us * scale, digits, row.p99Us * scale, digits,
              row.maxUs * scale, row.algorithmGBs, row.busGBs, row.iterations);
  std::fflush(stdout);
  rows_.push_back(row);
}

void Report::progress(size_t bytes, size_t done, size_t total) {
  if (!terminal_) {
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (now < nextProgress_) {
    return;
  }
  nextProgress_ = now + kProgressInterval;
  progressShown_ = true;
  std::fprintf(stderr, "\r\033[K%s, %zu bytes: %zu of %zu iterations",
               options_.name.c_str(), bytes, done, total);
}

void Report::clearProgress() {
  if (progressShown_) {
    std::fputs("\r\033[K", stderr);
    progressShown_ = false;
  }
}

void Report::writeJson() const {
  const std::string collective = findBenchmark(options_.name)->collective;
  nlohmann::json list = nlohmann::json::array();
  for (const auto& row : rows_) {
    list.push_back({{"benchmark", options_.name},
                    {"collective", collective},
                    {"algorithm", algorithmOf(collective)},
                    {"transport", options_.transport},
                    {"links", conditions_.links},
                    {"ranks", conditions_.ranks},
                    {"inputs", options_.inputs},
                    {"threads", options_.threads},
                    {"type", options_.halfPrecision ? "float16" : "float32"},
                    {"bytes", row.bytes},
                    {"total_bytes", row.totalBytes},
                    {"elements", row.elements},
                    {"min_us", row.minUs},
                    {"p50_us", row.p50Us},
                    {"p99_us", row.p99Us},
                    {"max_us", row.maxUs},
                    {"algorithm_bandwidth_gbs", row.algorithmGBs},
                    {"bus_bandwidth_gbs", row.busGBs},
                    {"iterations", row.iterations},
                    {"verified", verified_}});
  }
  std::ofstream file(options_.jsonFile);
  file << list.dump(1) << "\n";
  file.close();
  if (!file) {
    throw std::runtime_error("cannot write " + options_.jsonFile + ": " +
                             std::strerror(errno));
  }
}

}  // namespace benchmark
