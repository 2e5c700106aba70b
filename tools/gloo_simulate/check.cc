#include "tools/gloo_simulate/check.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <vector>

#include "gloo/common/string.h"
#include "tools/gloo_simulate/report.h"
#include "tools/gloo_simulate/sweep.h"

namespace gloo_simulate {
namespace {

namespace algorithms = gloo::algorithms;

// Measured times that differ by less may be in any order.
constexpr double kDiffers = 1.25;

struct Timed {
  const algorithms::AlgorithmInfo* algorithm = nullptr;
  std::vector<double> times;  // seconds, of one row each; not none
  double predicted = 0;

  double measured() const {  // the median, the lower one of an even number
    auto sorted = times;
    std::sort(sorted.begin(), sorted.end());
    return sorted[(sorted.size() - 1) / 2];
  }
};

// Collective, ranks, bytes.
using Call = std::tuple<std::string, int, size_t>;

// A key of `benchmark --all-algorithms`, or the other's.
const nlohmann::json& valueOf(const nlohmann::json& row, const char* key,
                              const char* other) {
  return row.at(row.contains(key) ? key : other);
}

size_t wholeOf(const nlohmann::json& row, const char* key, size_t least,
               size_t most) {
  const nlohmann::json& value = row.at(key);
  if (value.is_number()) {
    const double number = value;
    if (number >= static_cast<double>(least) &&
        number <= static_cast<double>(most) && std::trunc(number) == number) {
      return static_cast<size_t>(number);
    }
  }
  throw std::runtime_error(gloo::MakeString(key, " is ", value.dump(),
                                            ", not a whole number from ", least,
                                            " to ", most));
}

// A measurement of something else says nothing of the order that is predicted.
void requireOneFloatCall(const nlohmann::json& row) {
  const std::tuple<const char*, nlohmann::json, const char*> wanted[] = {
      {"inputs", 1, "--inputs"},
      {"threads", 1, "--threads"},
      {"type", "float32", "--halfprecision"}};
  for (const auto& [key, value, option] : wanted) {
    if (row.contains(key) && row.at(key) != value) {
      throw std::runtime_error(gloo::MakeString(
          key, " is ", row.at(key).dump(), ", but what is predicted is one ",
          "call at a time of one float32 vector: measure without ", option));
    }
  }
}

// `bytes` of a single run are those of a vector, which for some collectives is
// one of many. Reports that do not say how many there are in all are older.
size_t totalBytesOf(const nlohmann::json& row,
                    algorithms::Collective collective, int ranks) {
  using algorithms::Collective;
  if (row.contains("total_bytes")) {
    return wholeOf(row, "total_bytes", 0, kMostBytes);
  }
  const bool perRank =
      row.contains("benchmark") && (collective == Collective::kScatter ||
                                    collective == Collective::kGather ||
                                    collective == Collective::kAllgather ||
                                    collective == Collective::kAllgatherv ||
                                    collective == Collective::kAlltoall ||
                                    collective == Collective::kAlltoallv);
  const size_t vectors = perRank ? static_cast<size_t>(ranks) : 1;
  return vectors * wholeOf(row, "bytes", 0, kMostBytes / vectors);
}

void take(const nlohmann::json& row,
          std::map<Call, std::vector<Timed>>& calls) {
  requireOneFloatCall(row);
  const std::string collective = valueOf(row, "collective", "benchmark");
  const std::string name = row.at("algorithm");
  const auto* algorithm =
      algorithms::findAlgorithm(collectiveNamed(collective), name);
  if (name == "auto") {
    return;
  }
  const double us = valueOf(row, "us", "p50_us");
  if (algorithm == nullptr || !(us > 0)) {
    throw std::runtime_error(collective + " by '" + name +
                             "': no algorithm, or no time");
  }
  const auto ranks = static_cast<int>(wholeOf(row, "ranks", 2, kMostRanks));
  const size_t bytes = totalBytesOf(row, algorithm->collective, ranks);
  auto& timed = calls[{collective, ranks, bytes}];
  auto same = std::find_if(timed.begin(), timed.end(), [&](const Timed& other) {
    return other.algorithm == algorithm;
  });
  if (same == timed.end()) {
    same = timed.insert(same, {algorithm, {}, 0});
  }
  same->times.push_back(us * 1e-6);
}

void readCalls(const std::string& name,
               std::map<Call, std::vector<Timed>>& calls) {
  std::ifstream file(name);
  if (!file || (file.peek(), file.bad())) {  // (a directory can be opened)
    throw std::runtime_error("cannot read " + name + ": " +
                             std::strerror(errno));
  }
  size_t row = 0;
  try {
    const auto rows = nlohmann::json::parse(file);
    if (!rows.is_array() || rows.empty()) {
      throw std::runtime_error("no list of times, or an empty one");
    }
    for (row = 1; row <= rows.size(); row++) {
      take(rows[row - 1], calls);
    }
  } catch (const std::exception& e) {
    throw std::runtime_error(gloo::MakeString(
        name, ": ", row > 0 ? gloo::MakeString("row ", row, ": ") : "",
        e.what()));
  }
}

using Tell = std::function<void(const std::string&)>;

void predict(Options options, const Call& call, std::vector<Timed>& times,
             const Tell& note, const Tell& progress) {
  options.collective = collectiveNamed(std::get<0>(call));
  options.ranks = {std::get<1>(call)};
  options.sizes = {std::get<2>(call)};
  requireRanks(options);
  for (Timed& timed : times) {
    options.algorithm = timed.algorithm->name;
    for (const Row& row : sweep(options, note, progress)) {
      timed.predicted = row.seconds;
    }
  }
  progress("");
}

void tellWrong(const Call& call, const Timed& fast, const Timed& slow) {
  std::printf("  %s, %d ranks, %s: %s took %s and %s %s; predicted %s and %s\n",
              std::get<0>(call).c_str(), std::get<1>(call),
              bytesText(std::get<2>(call)).c_str(),
              std::string(fast.algorithm->name).c_str(),
              timeText(fast.measured()).c_str(),
              std::string(slow.algorithm->name).c_str(),
              timeText(slow.measured()).c_str(),
              timeText(fast.predicted).c_str(),
              timeText(slow.predicted).c_str());
}

}  // namespace

bool checkOrder(const Options& options, const Tell& note,
                const Tell& progress) {
  int pairs = 0;
  int wrong = 0;
  size_t unpredicted = 0;
  std::map<Call, std::vector<Timed>> calls;
  for (const std::string& file : options.checkFiles) {
    readCalls(file, calls);
  }
  for (auto& [call, times] : calls) {
    predict(options, call, times, note, progress);
    unpredicted += static_cast<size_t>(
        std::count_if(times.begin(), times.end(),
                      [](const Timed& timed) { return timed.predicted == 0; }));
    for (const Timed& fast : times) {
      for (const Timed& slow : times) {
        if (slow.measured() <= kDiffers * fast.measured() ||
            fast.predicted == 0 || slow.predicted == 0) {
          continue;
        }
        pairs++;
        if (fast.predicted >= slow.predicted) {
          wrong++;
          tellWrong(call, fast, slow);
        }
      }
    }
  }
  std::printf(
      "%d pairs of algorithms differ by over 25 %% as measured; %d of them are "
      "predicted in the other order\n",
      pairs, wrong);
  if (unpredicted > 0) {
    std::printf("%zu times of algorithms have no prediction\n", unpredicted);
  }
  return pairs > 0 && wrong == 0 && unpredicted == 0;
}

}  // namespace gloo_simulate
