#include "benchmarks/benchmark/validate.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fstream>
#include <utility>

#include "benchmarks/benchmark/device.h"
#include "benchmarks/benchmark/registry.h"
#include "benchmarks/benchmark/values.h"
#include "tools/support/parse.h"

namespace benchmark {
namespace {

template <typename... Args>
void require(bool condition, const Args&... text) {
  if (!condition) {
    std::string message;
    ((message += text), ...);
    throw UsageError(message);
  }
}

void requireRange(const char* option, int64_t value, int64_t low,
                  int64_t high) {
  require(value >= low && value <= high, option, ": ", std::to_string(value),
          " is not between ", std::to_string(low), " and ",
          std::to_string(high));
}

constexpr int kMaxRanks = 65536;
constexpr int kMaxLocalRanks = 256;

int sizeOf(const Options& options) {
  return options.localRanks != 0 ? options.localRanks : options.size;
}

int stores(const Options& options) {
  int given = 0;
  for (const auto* store :
       {&options.redisHost, &options.sharedPath, &options.storeUrl}) {
    given += store->empty() ? 0 : 1;
  }
  return given;
}

void validateLocal(const Options& options) {
  requireRange("--ranks", options.localRanks, 1, kMaxLocalRanks);
  require(options.size == 0 && options.rank == -1,
          "--ranks starts all processes itself: leave out --size and --rank");
  require(stores(options) == 0,
          "--ranks has a store of its own: leave out --host, --shared-path "
          "and --store");
}

void validateParticipants(const Options& options) {
  if (options.localRanks != 0) {
    validateLocal(options);
    return;
  }
  require(options.size != 0, "--size is missing or 0 (or use --ranks N)");
  require(options.rank != -1, "--rank is missing or -1 (or use --ranks N)");
  requireRange("--size", options.size, 1, kMaxRanks);
  requireRange("--rank", options.rank, 0, options.size - 1);
  require(stores(options) > 0,
          "no store: give --shared-path DIR, --host and --port of Redis, or "
          "--store URL");
  require(stores(options) == 1,
          "two stores: give one of --shared-path, --host and --store");
  requireRange("--port", options.redisPort, 1, 65535);
  require(options.redisHost.empty() || redisAvailable(),
          "--host: this build has no Redis store (USE_REDIS is off)");
}

void validateTransport(const Options& options) {
  const std::string trouble = transportTrouble(options.transport);
  require(trouble.empty(), "-t ", options.transport, ": ", trouble);
  requireRange("--ib-port", options.ibPort, 1, 255);
  requireRange("--ib-index", options.ibIndex, -1, 255);
}

// --all-algorithms and --tune.
void validateComparison(const Options& options) {
  require(!options.allAlgorithms || options.tuneFile.empty(),
          "give either --all-algorithms or --tune");
  require(options.threads == 1 && options.inputs == 1 &&
              !options.halfPrecision && !options.sync && !options.elements,
          "--all-algorithms and --tune choose sizes themselves, of one vector "
          "of float32 in one thread: leave out --elements, --threads, "
          "--inputs, --halfprecision, --sync and --busy-poll");
  require(!options.nanos,
          "--all-algorithms and --tune print microseconds: leave out --nanos");
  require(options.tuneFile.empty() || options.jsonFile.empty(),
          "--tune writes its own file: leave out --json");
  require(!options.iterationCount,
          "--all-algorithms and --tune need --iteration-time in place of "
          "--iteration-count");
  const Entry* entry = findBenchmark(options.name);
  require(
      options.name.empty() || (entry != nullptr && !entry->collective.empty()),
      "benchmark '", options.name,
      "' has no algorithms to compare; give allreduce, for example");
  requireRange("--largest", static_cast<int64_t>(options.largestBytes), 4,
               int64_t{1} << 32);
  require(sizeOf(options) >= 2, "one rank alone has no algorithms to compare");
}

void validateName(const Options& options) {
  require(!options.name.empty(), "the NAME of a benchmark is missing");
  const Entry* entry = findBenchmark(options.name);
  require(entry != nullptr, "there is no benchmark '", options.name, "'");
}

// That the benchmark can be run with so many ranks and vectors.
void validateShape(const Options& options) {
  const Entry* entry = findBenchmark(options.name);
  const int size = sizeOf(options);
  require(size >= entry->minRanks, "benchmark '", options.name,
          "' needs at least ", std::to_string(entry->minRanks), " ranks");
  require(entry->anyInputs || options.inputs == 1, "benchmark '", options.name,
          "' has one vector per rank: leave out --inputs");
  // Rank r's partners are r ^ 1, r ^ 2, r ^ 4, ...
  require(options.name != "pairwise_exchange" ||
              (options.destinations > 0 && options.destinations < 31 &&
               size % (1 << options.destinations) == 0),
          "--destinations: ", std::to_string(size),
          " ranks cannot be paired with ", std::to_string(options.destinations),
          " each; the ranks must be a multiple of 2 to that power");
}

// What is cut into parts has an element for each.
void validateParts(const Options& options) {
  const size_t parts =
      partsOf(*findBenchmark(options.name), sizeOf(options), options);
  require(options.elements.value_or(parts) >= parts, "--elements: benchmark '",
          options.name, "' cuts them into ", std::to_string(parts),
          " equal parts: give at least as many");
}

// A class that takes an int would be given the rest of a division by 2^32.
void validateCount(const Options& options) {
  const Entry& entry = *findBenchmark(options.name);
  const int size = options.halfPrecision ? 2 : 4;
  const int most = INT_MAX / (entry.inInt == InInt::kBytes ? size : 1);
  require(entry.inInt == InInt::kNothing ||
              options.elements.value_or(0) <= size_t(most),
          "--elements: benchmark '", options.name, "' takes at most ",
          std::to_string(most), ": its class counts ",
          entry.inInt == InInt::kBytes ? "bytes" : "elements", " in an int");
}

// The check wants exact sums.
void validateSums(const Options& options) {
  const int64_t summed = int64_t{sizeOf(options)} * options.inputs;
  const int64_t most =
      options.halfPrecision ? mostSummed<gloo::float16>() : mostSummed<float>();
  require(
      !options.verify || !findBenchmark(options.name)->sums || summed <= most,
      options.halfPrecision ? "--halfprecision: float16" : "float32",
      " holds the sum of ", std::to_string(most),
      " vectors exactly, not that of ", std::to_string(summed),
      " (ranks times --inputs): sum fewer, or give --no-verify");
}

void validateWork(const Options& options) {
  constexpr int64_t kMaxElements = int64_t{1} << 34;
  requireRange("--inputs", options.inputs, 1, 256);
  requireRange("--threads", options.threads, 1, 256);
  requireRange("--base", options.base, 2, 1024);
  requireRange("--messages", options.messages, 1, 1000000);
  requireRange("--destinations", options.destinations, 1, kMaxRanks);
  requireRange("--warmup-iters", options.warmupIterations, 0, 1000000);
  require(!options.elements || (*options.elements >= 1 &&
                                *options.elements <= size_t(kMaxElements)),
          "--elements: not between 1 and ", std::to_string(kMaxElements));
  require(
      !options.iterationCount || (*options.iterationCount >= 1 &&
                                  *options.iterationCount <= size_t{100000000}),
      "--iteration-count: not between 1 and 100000000");
  require(!options.iterationCount || !options.iterationTime,
          "give either --iteration-count or --iteration-time");
}

// Before hours of measuring, by the rank that writes it. An older report stays
// until there is a new one.
void validateReport(const Options& options) {
  if (options.jsonFile.empty() || options.rank > 0) {
    return;
  }
  const bool open = std::ofstream(options.jsonFile, std::ios::app).is_open();
  require(open, "--json: cannot write ", options.jsonFile, ": ",
          std::strerror(errno));
}

// Those of a transport's devices, of which each thread has one.
void refuseIgnoredDevices(const CLI::App& app, const Options& options) {
  const bool any = options.transport == "auto";
  require(any || options.transport == "tcp" || app.count("--tcp-device") == 0,
          "--tcp-device needs -t auto or tcp");
  const bool without = !transportTrouble("ibverbs").empty();
  for (const char* option :
       {"--ib-device", "--ib-port", "--ib-index", "--ib-eager-bytes"}) {
    const bool given = app.count(option) > 0;
    require(!given || any || options.transport == "ibverbs", option,
            " needs -t auto or ibverbs");
    require(!given || !without, option,
            ": this build is without RDMA (USE_IBVERBS is off)");
  }
  const size_t threads = size_t(std::max(options.threads, 1));
  for (const auto& [option, devices] :
       {std::pair("--tcp-device", options.tcpDevices.size()),
        std::pair("--ib-device", options.ibDevices.size())}) {
    require(devices <= threads, option, ": ", std::to_string(devices),
            " devices, but each thread uses one: name fewer",
            comparesAlgorithms(options) ? "" : ", or give --threads");
  }
}

// Those that only some benchmarks have, and not what is to be run.
void refuseOptionsOfOthers(const CLI::App& app, const Options& options) {
  for (const char* option : {"--messages", "--destinations", "--base"}) {
    bool used = false;
    std::string owners;
    for (const Entry& entry : allBenchmarks()) {
      const auto& own = entry.ownOptions;
      if (std::find(own.begin(), own.end(), option) != own.end()) {
        owners += (owners.empty() ? "" : ", ") + entry.name;
        used |= options.name == entry.name ||
                (options.name.empty() && comparesAlgorithms(options) &&
                 !entry.collective.empty());
      }
    }
    require(app.count(option) == 0 || used, option, " is an option of ", owners,
            ": leave it out");
  }
}

}  // namespace

void refuseIgnored(const CLI::App& app, const Options& options) {
  const bool compares = comparesAlgorithms(options);
  require(compares || app.count("--largest") == 0,
          "--largest goes with --all-algorithms or --tune: leave it out, or "
          "give --elements");
  require(!compares || app.count("--warmup-iters") == 0,
          "--all-algorithms and --tune warm up once for each turn: leave out "
          "--warmup-iters");
  refuseIgnoredDevices(app, options);
  // What is no benchmark is to be told first.
  if (options.name.empty() ? compares
                           : findBenchmark(options.name) != nullptr) {
    refuseOptionsOfOthers(app, options);
  }
}

void validate(const Options& options) {
  if (comparesAlgorithms(options)) {
    validateParticipants(options);
    validateComparison(options);
    validateTransport(options);
    validateWork(options);
    validateReport(options);
    return;
  }
  validateName(options);
  validateParticipants(options);
  validateShape(options);
  validateTransport(options);
  validateWork(options);
  validateParts(options);
  validateCount(options);
  validateSums(options);
  validateReport(options);
}

std::string availableTransports() {
  std::string names;
  for (const char* name : {"auto", "tcp", "tls", "ibverbs", "shm"}) {
    if (transportTrouble(name).empty()) {
      names += names.empty() ? name : std::string(", ") + name;
    }
  }
  return "here: " + names;
}

}  // namespace benchmark
