#include "benchmarks/benchmark/tune.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "benchmarks/benchmark/network.h"
#include "benchmarks/benchmark/tune_direct.h"
#include "benchmarks/benchmark/tune_file.h"

namespace benchmark {
namespace {

using nlohmann::json;

double usOf(const Measured& measured, const std::string& algorithm) {
  for (const auto& contestant : measured.algorithms) {
    if (contestant.name == algorithm) {
      return contestant.us;
    }
  }
  throw std::logic_error("no time of " + algorithm);
}

// Where, between two sizes, `next` becomes as quick as `former`.
size_t crossingOf(const Measured& low, const Measured& high,
                  const std::string& former, const std::string& next) {
  return crossing({low.bytes, usOf(low, former), usOf(low, next)},
                  {high.bytes, usOf(high, former), usOf(high, next)});
}

// To three digits: more are noise.
double rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2e", value);
  return std::strtod(text, nullptr);
}

// Collectives that are measured next run in memory that all ranks have mapped,
// whatever the file said.
void writeNetwork(const Options& options, const Network& network,
                  const std::vector<std::string>& measuredNext) {
  json content = readTuneFile(options.tuneFile);
  json& entry = networkOf(content, options);
  entry["latency"] = rounded(network.latency);
  entry["overhead"] = rounded(network.overhead);
  entry["gap"] = rounded(network.gap);
  entry["gap_per_byte"] = rounded(network.gapPerByte);
  entry["reduce_per_byte"] = rounded(network.reducePerByte);
  entry["copy_per_byte"] = rounded(network.copyPerByte);
  entry["segment_bytes"] = network.segmentBytes;
  if (entry.contains("direct") && entry["direct"].contains("most_bytes")) {
    for (const std::string& collective : measuredNext) {
      entry["direct"]["most_bytes"].erase(collective);
    }
  }
  writeTuneFile(options.tuneFile, content);
}

// `direct`: the longest vectors in memory that all ranks have mapped; none: all
// of them, or there is no such memory.
void writeTable(const Options& options, const std::string& collective,
                const std::vector<BestFrom>& best,
                std::optional<size_t> direct) {
  json rows = json::array();
  for (const auto& row : best) {
    rows.push_back({{"bytes", row.bytes}, {"algorithm", row.algorithm}});
  }
  json content = readTuneFile(options.tuneFile);
  json& network = networkOf(content, options);
  network["best"][collective] = rows;
  if (direct) {
    network["direct"]["most_bytes"][collective] = *direct;
  }
  writeTuneFile(options.tuneFile, content);
}

void say(const Options& options, const std::string& text) {
  if (options.rank == 0) {
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  }
}

std::vector<Measured> measureAll(const Entry& entry, Contest& contest) {
  std::vector<Measured> all;
  for (const size_t bytes : contest.sizes()) {
    const size_t elements = contest.elementsFor(entry, bytes);
    if (elements > 0) {
      auto algorithms = contest.measure(entry, elements);
      const double autoUs = algorithms[0].us;
      algorithms.erase(algorithms.begin());  // auto is no algorithm
      all.push_back(
          {contest.bytesOf(entry, elements), std::move(algorithms), autoUs});
    }
  }
  return all;
}

std::vector<std::string> collectivesOf(const Contest& contest) {
  std::vector<std::string> names;
  for (const Entry* entry : contest.entries()) {
    names.push_back(entry->collective);
  }
  return names;
}

// Where the links are quicker for all longer vectors: up to there.
std::optional<size_t> mostDirect(const std::vector<Measured>& measured) {
  constexpr double kHardly = 1.03;
  std::vector<Ways> ways;
  for (const Measured& each : measured) {
    const auto quickest = std::min_element(
        each.algorithms.begin(), each.algorithms.end(),
        [](const Contestant& a, const Contestant& b) { return a.us < b.us; });
    ways.push_back({each.bytes, each.autoUs, kHardly * quickest->us});
  }
  const auto links = thresholdOf(ways);
  return links ? std::optional<size_t>(*links - 1) : std::nullopt;
}

std::string describe(const std::vector<BestFrom>& best) {
  std::string text;
  for (const auto& row : best) {
    text += (text.empty() ? "" : ", ") + row.algorithm + " from " +
            std::to_string(row.bytes) + " B";
  }
  return text;
}

}  // namespace

std::vector<BestFrom> bestOf(const std::vector<Measured>& measured) {
  constexpr double kHardly = 0.97;
  std::vector<BestFrom> best;
  for (size_t i = 0; i < measured.size(); i++) {
    const auto& times = measured[i].algorithms;
    const auto quickest = std::min_element(
        times.begin(), times.end(),
        [](const Contestant& a, const Contestant& b) { return a.us < b.us; });
    if (best.empty()) {
      best.push_back({0, quickest->name});
      continue;
    }
    const std::string& former = best.back().algorithm;
    if (quickest->us < kHardly * usOf(measured[i], former)) {
      const size_t bytes = std::max(
          best.back().bytes + 1,
          crossingOf(measured[i - 1], measured[i], former, quickest->name));
      best.push_back({bytes, quickest->name});
    }
  }
  return best;
}

void tune(const Options& options, Contest& contest) {
  unsetenv("GLOO_TUNING_FILE");
  const Network network = measureNetwork(contest, options);
  char text[160];
  std::snprintf(text, sizeof(text),
                "latency %.2f us, overhead %.2f us, gap %.2f us, %.3g GB/s, "
                "reduction %.3g GB/s, segments of %zu bytes",
                network.latency * 1e6, network.overhead * 1e6,
                network.gap * 1e6, 1e-9 / network.gapPerByte,
                1e-9 / network.reducePerByte, network.segmentBytes);
  say(options, text);
  if (options.rank == 0) {
    writeNetwork(options, network, collectivesOf(contest));
  }
  say(options, tuneDirect(options, contest));
  if (options.rank == 0) {
    // Rank 0's profile is everybody's.
    setenv("GLOO_TUNING_FILE", options.tuneFile.c_str(), 1);
  }
  const auto entries = contest.entries();
  for (size_t i = 0; i < entries.size(); i++) {
    const Entry& entry = *entries[i];
    const auto measured = measureAll(entry, contest);
    const auto best = bestOf(measured);
    const auto direct = contest.isDirect(entry.collective) && entry.hasSizes
                            ? mostDirect(measured)
                            : std::nullopt;
    if (options.rank == 0) {
      writeTable(options, entry.collective, best, direct);
    }
    say(options, std::to_string(i + 1) + " of " +
                     std::to_string(entries.size()) + ", " + entry.collective +
                     ": " + describe(best) +
                     (direct ? ", above " + std::to_string(*direct) +
                                   " B also where all ranks share memory"
                             : ""));
  }
}

}  // namespace benchmark
