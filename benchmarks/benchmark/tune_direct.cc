#include "benchmarks/benchmark/tune_direct.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "algorithms/direct_parameters.h"
#include "benchmarks/benchmark/tune_file.h"

namespace benchmark {
namespace {

using gloo::algorithms::DirectParameters;
using nlohmann::json;
using ContextPtr = std::shared_ptr<gloo::Context>;

constexpr const char* kVariable = "GLOO_TUNING_FILE";
constexpr double kNever = 1e15;  // the most that a file may say
constexpr size_t kLeast = 512;
constexpr size_t kMost = size_t{1} << 20;

// Measures allreduce, on contexts that differ in one of the parameters.
class DirectTuning {
 public:
  DirectTuning(const Options& options, Contest& contest)
      : options_(options), contest_(contest) {}

  void flat() {
    const auto from = threshold("flat_bytes", kNever, 0, 0);
    if (from) {
      found_["flat_bytes"] = *from - 1;
    }
    // Of ranks that share cores it would hide what was measured with them.
    if (from && options_.size > int(std::thread::hardware_concurrency())) {
      found_["crowded_flat_bytes"] = nullptr;
    }
  }
  void halved() {
    if (const auto from = threshold("halved_bytes", kNever, 0,
                                    DirectParameters::kShippedHalved)) {
      found_["halved_bytes"] = *from;
    }
  }
  void inPlace() {
    contest_.useSharedMemory(true);
    if (const auto from =
            threshold("in_place_bytes", kNever, DirectParameters::kLeastInPlace,
                      DirectParameters::kShippedInPlace)) {
      found_["in_place_bytes"] = *from;
    }
    contest_.useSharedMemory(false);
  }

  // Shorter chunks than a slot, if that is quicker with long vectors.
  void chunk() {
    constexpr size_t kVectors[] = {size_t{1} << 20, size_t{4} << 20};
    constexpr double kHardly = 0.97;
    const std::vector<double> candidates{kNever, 1 << 15, 1 << 16, 1 << 17};
    if (options_.largestBytes < kVectors[0]) {
      return;
    }
    std::vector<ContextPtr> contexts;
    for (const double bytes : candidates) {
      contexts.push_back(connect("chunk_bytes", bytes));
    }
    std::vector<double> product(candidates.size(), 1);
    for (const size_t bytes : kVectors) {
      const auto us = measure(bytes, contexts);
      for (size_t i = 0; i < us.size(); i++) {
        product[i] *= us[i] / us[0];
      }
    }
    const auto best = std::min_element(product.begin(), product.end());
    if (*best < kHardly * kHardly) {
      found_["chunk_bytes"] =
          size_t(candidates[size_t(best - product.begin())]);
    } else {
      found_["chunk_bytes"] = nullptr;
    }
  }

  // A patch of the network's `direct` (RFC 7396): null is to be as shipped.
  const json& found() const { return found_; }

 private:
  // With what was found so far.
  ContextPtr connect(const char* parameter, double bytes) {
    const std::string path = options_.tuneFile + ".direct";
    if (options_.rank == 0) {
      json content = readTuneFile(options_.tuneFile);
      json& network = networkOf(content, options_);
      json& direct = network["direct"] = json::object();
      direct.merge_patch(found_);
      direct[parameter] = bytes;
      writeTuneFile(path, content);
      setenv(kVariable, path.c_str(), 1);  // rank 0's is everybody's
    }
    auto context = contest_.connect("GLOO_ALGORITHM", "");
    if (options_.rank == 0) {
      unsetenv(kVariable);
      std::remove(path.c_str());
    }
    return context;
  }

  size_t largest() const { return std::min(kMost, options_.largestBytes); }

  std::vector<double> measure(size_t bytes,
                              const std::vector<ContextPtr>& contexts) {
    const Entry& allreduce = *findBenchmark("allreduce");
    return contest_.measure(allreduce, bytes / sizeof(float), contexts);
  }

  // The size from which on the parameter is better `to` than `from` (no lower
  // than `shipped` if it never is); none: nothing was measured.
  std::optional<size_t> threshold(const char* parameter, double from, double to,
                                  size_t shipped) {
    const std::vector<ContextPtr> contexts{connect(parameter, from),
                                           connect(parameter, to)};
    std::vector<Ways> ways;
    for (size_t bytes = kLeast; bytes <= largest(); bytes *= 2) {
      const auto us = measure(bytes, contexts);
      ways.push_back({bytes, us[0], us[1]});
    }
    return measuredThreshold(ways, shipped);
  }

  const Options& options_;
  Contest& contest_;
  json found_ = json::object();
};

}  // namespace

size_t crossing(const Ways& low, const Ways& high) {
  const double below = std::log(low.longUs / low.shortUs);
  const double above = std::log(high.shortUs / high.longUs);
  const double part = below + above > 0 ? below / (below + above) : 0.5;
  const double from = std::log(double(low.bytes));
  const double to = std::log(double(high.bytes));
  return size_t(
      std::lround(std::exp(from + std::clamp(part, 0.0, 1.0) * (to - from))));
}

std::optional<size_t> thresholdOf(const std::vector<Ways>& ways) {
  // Of all sizes that are left to the second way, so far.
  double cost = 0;
  double least = 0;
  size_t first = ways.size();
  for (size_t i = ways.size(); i-- > 0;) {
    cost += std::log(ways[i].longUs / ways[i].shortUs);
    if (cost < least) {
      least = cost;
      first = i;
    }
  }
  if (first == ways.size()) {
    return std::nullopt;
  }
  return first == 0 ? ways[0].bytes : crossing(ways[first - 1], ways[first]);
}

std::optional<size_t> measuredThreshold(const std::vector<Ways>& ways,
                                        size_t shipped) {
  if (ways.empty()) {
    return std::nullopt;
  }
  return thresholdOf(ways).value_or(std::max(ways.back().bytes + 1, shipped));
}

std::string tuneDirect(const Options& options, Contest& contest) {
  if (!contest.isDirect("allreduce")) {
    return "no memory that all ranks have mapped";
  }
  DirectTuning tuning(options, contest);
  if (options.size > 2) {
    tuning.flat();
  } else if (std::thread::hardware_concurrency() >= 2) {
    tuning.halved();
  }
  tuning.inPlace();
  tuning.chunk();
  if (options.rank == 0) {
    json content = readTuneFile(options.tuneFile);
    networkOf(content, options)["direct"].merge_patch(tuning.found());
    writeTuneFile(options.tuneFile, content);
  }
  std::string values;
  for (const auto& item : tuning.found().items()) {
    if (!item.value().is_null()) {
      values += " " + item.key() + " " + item.value().dump();
    }
  }
  return "in memory that all ranks have mapped:" +
         (values.empty() ? " as shipped" : values);
}

}  // namespace benchmark
