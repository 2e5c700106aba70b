#include "tools/gloo_simulate/check.h"

#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <vector>

#include "tools/gloo_simulate/report.h"
#include "tools/gloo_simulate/sweep.h"

namespace gloo_simulate {
namespace {

namespace algorithms = gloo::algorithms;

// Measured times that differ by less may be in any order.
constexpr double kDiffers = 1.25;

struct Timed {
  const algorithms::AlgorithmInfo* algorithm = nullptr;
  double measured = 0;  // seconds
  double predicted = 0;
};

// Collective, ranks, bytes.
using Call = std::tuple<std::string, int, size_t>;

// A key of `benchmark --all-algorithms`, or the other's.
const nlohmann::json& valueOf(const nlohmann::json& row, const char* key,
                              const char* other) {
  return row.at(row.contains(key) ? key : other);
}

void take(const nlohmann::json& row,
          std::map<Call, std::vector<Timed>>& calls) {
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
  calls[{collective, row.at("ranks"), row.at("bytes")}].push_back(
      {algorithm, us * 1e-6, 0});
}

void readCalls(const std::string& name,
               std::map<Call, std::vector<Timed>>& calls) {
  std::ifstream file(name);
  if (!file) {
    throw std::runtime_error("cannot read " + name);
  }
  try {
    for (const auto& row : nlohmann::json::parse(file)) {
      take(row, calls);
    }
  } catch (const std::exception& e) {
    throw std::runtime_error(name + ": " + e.what());
  }
}

void predict(Options options, const Call& call, std::vector<Timed>& times) {
  options.collective = collectiveNamed(std::get<0>(call));
  options.ranks = {std::get<1>(call)};
  options.sizes = {std::get<2>(call)};
  for (Timed& timed : times) {
    options.algorithm = timed.algorithm->name;
    for (const Row& row : sweep(
             options, [](const auto&) {}, [](const auto&) {})) {
      timed.predicted = row.seconds;
    }
  }
}

void tellWrong(const Call& call, const Timed& fast, const Timed& slow) {
  std::printf("  %s, %d ranks, %s: %s took %s and %s %s; predicted %s and %s\n",
              std::get<0>(call).c_str(), std::get<1>(call),
              bytesText(std::get<2>(call)).c_str(),
              std::string(fast.algorithm->name).c_str(),
              timeText(fast.measured).c_str(),
              std::string(slow.algorithm->name).c_str(),
              timeText(slow.measured).c_str(), timeText(fast.predicted).c_str(),
              timeText(slow.predicted).c_str());
}

}  // namespace

bool checkOrder(const Options& options) {
  int pairs = 0;
  int wrong = 0;
  std::map<Call, std::vector<Timed>> calls;
  for (const std::string& file : options.checkFiles) {
    readCalls(file, calls);
  }
  for (auto& [call, times] : calls) {
    predict(options, call, times);
    for (const Timed& fast : times) {
      for (const Timed& slow : times) {
        if (slow.measured <= kDiffers * fast.measured || fast.predicted == 0 ||
            slow.predicted == 0) {
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
  return wrong == 0;
}

}  // namespace gloo_simulate
