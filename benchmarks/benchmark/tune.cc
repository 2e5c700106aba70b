#include "benchmarks/benchmark/tune.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "benchmarks/benchmark/network.h"

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
size_t crossing(const Measured& low, const Measured& high,
                const std::string& former, const std::string& next) {
  const double below = std::log(usOf(low, next) / usOf(low, former));
  const double above = std::log(usOf(high, former) / usOf(high, next));
  const double part = below + above > 0 ? below / (below + above) : 0.5;
  const double from = std::log(double(low.bytes));
  const double to = std::log(double(high.bytes));
  return size_t(
      std::lround(std::exp(from + std::clamp(part, 0.0, 1.0) * (to - from))));
}

// ---- The file. ----

// Whether what was measured can be put into it.
bool isNetwork(const json& network) {
  return network.is_object() &&
         network.value("best", json::object()).is_object();
}

json readFile(const std::string& path) {
  std::ifstream file(path);
  if (!file.is_open()) {
    return {{"version", 1}, {"networks", json::array()}};
  }
  json content = json::parse(file, nullptr, false);
  if (!content.is_object() || content.value("version", json()) != 1 ||
      !content.contains("networks") || !content["networks"].is_array() ||
      !std::all_of(content["networks"].begin(), content["networks"].end(),
                   isNetwork)) {
    throw std::runtime_error("--tune: " + path +
                             " exists and is no tuning file; name another");
  }
  return content;
}

// It takes the file's place when it is complete.
std::string temporaryFor(const std::string& path) { return path + ".new"; }

// A line per network: what ranks can agree on is 63 KiB.
void writeFile(const std::string& path, const json& content) {
  const std::string temporary = temporaryFor(path);
  std::ofstream file(temporary);
  file << "{\"version\": 1, \"networks\": [";
  const char* separator = "\n";
  for (const json& network : content["networks"]) {
    file << separator << network.dump();
    separator = ",\n";
  }
  file << "\n]}\n";
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    throw std::runtime_error("cannot write " + path + ": " +
                             std::strerror(errno));
  }
}

// The one of these options, made if it is not there.
json& networkOf(json& content, const Options& options) {
  for (json& network : content["networks"]) {
    if (network.is_object() && network.value("ranks", json()) == options.size &&
        network.value("transport", json()) == options.transport) {
      return network;
    }
  }
  content["networks"].push_back(
      {{"transport", options.transport}, {"ranks", options.size}});
  return content["networks"].back();
}

// To three digits: more are noise.
double rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2e", value);
  return std::strtod(text, nullptr);
}

void writeNetwork(const Options& options, const Network& network) {
  json content = readFile(options.tuneFile);
  json& entry = networkOf(content, options);
  entry["latency"] = rounded(network.latency);
  entry["overhead"] = rounded(network.overhead);
  entry["gap"] = rounded(network.gap);
  entry["gap_per_byte"] = rounded(network.gapPerByte);
  entry["reduce_per_byte"] = rounded(network.reducePerByte);
  entry["copy_per_byte"] = rounded(network.copyPerByte);
  entry["segment_bytes"] = network.segmentBytes;
  writeFile(options.tuneFile, content);
}

void writeTable(const Options& options, const std::string& collective,
                const std::vector<BestFrom>& best) {
  json rows = json::array();
  for (const auto& row : best) {
    rows.push_back({{"bytes", row.bytes}, {"algorithm", row.algorithm}});
  }
  json content = readFile(options.tuneFile);
  networkOf(content, options)["best"][collective] = rows;
  writeFile(options.tuneFile, content);
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
      algorithms.erase(algorithms.begin());  // auto is no algorithm
      all.push_back({bytes, std::move(algorithms)});
    }
  }
  return all;
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
          crossing(measured[i - 1], measured[i], former, quickest->name));
      best.push_back({bytes, quickest->name});
    }
  }
  return best;
}

void checkTuneFile(const Options& options) {
  readFile(options.tuneFile);
  // Nobody should measure for a minute to be told this.
  const std::string temporary = temporaryFor(options.tuneFile);
  if (!std::ofstream(temporary, std::ios::app).is_open()) {
    throw std::runtime_error("--tune: cannot write " + temporary + ": " +
                             std::strerror(errno));
  }
  std::remove(temporary.c_str());
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
    writeNetwork(options, network);
    // Rank 0's profile is everybody's.
    setenv("GLOO_TUNING_FILE", options.tuneFile.c_str(), 1);
  }
  const auto entries = contest.entries();
  for (size_t i = 0; i < entries.size(); i++) {
    const auto best = bestOf(measureAll(*entries[i], contest));
    if (options.rank == 0) {
      writeTable(options, entries[i]->collective, best);
    }
    say(options, std::to_string(i + 1) + " of " +
                     std::to_string(entries.size()) + ", " +
                     entries[i]->collective + ": " + describe(best));
  }
}

}  // namespace benchmark
