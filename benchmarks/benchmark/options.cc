#include "benchmarks/benchmark/options.h"

#include <cmath>
#include <map>

#include "benchmarks/benchmark/registry.h"
#include "benchmarks/benchmark/validate.h"
#include "tools/support/parse.h"

namespace benchmark {
namespace {

// The texts of options that need more than their target.
struct Raw {
  std::string iterationTime;
  size_t iterationCount = 0;
  size_t elements = 0;
  bool noVerify = false;
  bool gpuDirect = false;
};

void addParticipants(CLI::App& app, Options& options) {
  app.add_option("--ranks", options.localRanks,
                 "start this many processes here, with a store of their own");
  app.add_option("-s,--size", options.size, "number of ranks");
  app.add_option("-r,--rank", options.rank, "this rank");
  app.add_option("-h,--redis-host,--host", options.redisHost,
                 "host of the Redis store");
  app.add_option("-p,--redis-port,--port", options.redisPort, "its port; 6379");
  app.add_option("-x,--prefix", options.prefix,
                 "of the keys in the store: jobs that meet there at a time "
                 "need one each; prefix");
  app.add_option("--shared-path", options.sharedPath,
                 "directory of a file store, instead of Redis");
  app.add_option("--store", options.storeUrl,
                 "URL of any store, instead; tcp://HOST:PORT is served by "
                 "rank 0");
}

void addTransport(CLI::App& app, Options& options, Raw& raw) {
  app.add_option("-t,--transport", options.transport,
                 "auto, tcp, ibverbs or shm; " + availableTransports());
  app.add_option("--sync", options.sync,
                 "call setSync; by itself it changes nothing");
  app.add_option("--busy-poll", options.busyPoll, "wait by polling");
  app.add_option("--tcp-device", options.tcpDevices,
                 "network interfaces, for the threads in turn")
      ->delimiter(',')
      ->allow_extra_args(false);  // else they would swallow the NAME
  app.add_option("--ib-device", options.ibDevices,
                 "RDMA devices, for the threads in turn")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--ib-port", options.ibPort, "port of the RDMA device; 1");
  app.add_option("--ib-index", options.ibIndex, "its GID index; -1: choose");
  app.add_option(
      "--ib-eager-bytes", options.ibEagerBytes,
      "its longest message that is copied; not given: the library's");
  app.add_flag("--gpudirect", raw.gpuDirect,
               "refused: all vectors are the host's");
}

void addWork(CLI::App& app, Options& options, Raw& raw) {
  app.add_flag("--no-verify,!--verify", raw.noVerify,
               "do not check the results");
  app.add_flag("--show-all-errors", options.showAllErrors,
               "print every wrong element and every rank's error");
  app.add_option("--inputs", options.inputs, "vectors of each rank; 1");
  app.add_option("--elements", raw.elements,
                 "elements of each vector; not given: 4 B to 64 MiB");
  app.add_option("--warmup-iters", options.warmupIterations, "5");
  app.add_option("--iteration-count", raw.iterationCount,
                 "iterations; not given: by time");
  app.add_option("--iteration-time", raw.iterationTime,
                 "time of each size, as 2s or 500ms; 2s, in a sweep 500ms, "
                 "with --tune 100ms");
  app.add_option("--threads", options.threads,
                 "threads, each with a context of its own; 1");
  app.add_flag("--halfprecision", options.halfPrecision,
               "float16 in place of float32");
  app.add_flag("--shared-memory", options.sharedMemory,
               "vectors from the shared allocator (docs/shm.md)");
  app.add_option("--destinations", options.destinations,
                 "of pairwise_exchange; 1");
  app.add_option("--base", options.base, "of allreduce by bcube; 2");
  app.add_option("--messages", options.messages,
                 "of the sendrecv benchmarks, per iteration; 100");
}

void addComparison(CLI::App& app, Options& options) {
  app.add_flag("--all-algorithms", options.allAlgorithms,
               "compare the library's choice with every algorithm of NAME, or "
               "of all collectives");
  app.add_option("--tune", options.tuneFile,
                 "measure the transport and the algorithms of NAME, or of all "
                 "collectives, for this number of ranks, and write the result "
                 "into this file, for GLOO_TUNING_FILE")
      ->check(command_line::isName());
  app.add_option("--largest", options.largestBytes,
                 "bytes in total, of these two; 67108864");
}

void addReport(CLI::App& app, Options& options) {
  app.add_flag("--nanos", options.nanos, "times in ns, not us");
  app.add_option("--json", options.jsonFile,
                 "also write the results to this file")
      ->check(command_line::isName());
}

void take(const CLI::App& app, const Raw& raw, Options& options) {
  if (app.count("--ranks") > 0 && options.localRanks == 0) {
    throw UsageError("--ranks: 0 is no number of processes");
  }
  options.verify = !raw.noVerify;
  if (app.count("--elements") > 0) {
    options.elements = raw.elements;
  }
  if (app.count("--iteration-count") > 0) {
    options.iterationCount = raw.iterationCount;
  }
  if (app.count("--iteration-time") > 0) {
    options.iterationTime = parseDuration(raw.iterationTime);
  }
  if (raw.gpuDirect) {
    throw UsageError(
        "--gpudirect: the vectors of these benchmarks are the host's; what "
        "moves a CUDA device's: docs/ibverbs.md, 'Memory of CUDA devices'");
  }
  if (options.busyPoll) {
    options.sync = true;  // polling is a way to wait synchronously
  }
}

}  // namespace

std::chrono::nanoseconds parseDuration(const std::string& text) {
  static const std::map<std::string, double> kUnits = {
      {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 6e10}};
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const auto unit = kUnits.find(end);
  const bool number = end != text.c_str() && std::isfinite(value);
  if (!number || unit == kUnits.end() || value <= 0 ||
      value * unit->second < 1 || value * unit->second > 8.64e13) {
    throw UsageError("'" + text +
                     "' is not a duration such as 2s or 500ms, up to a day");
  }
  return std::chrono::nanoseconds(int64_t(value * unit->second));
}

Options parseOptions(int argc, const char* const* argv) {
  CLI::App app("Measures collective operations.", "benchmark");
  Options options;
  Raw raw;
  app.set_help_flag("--help", "print this text");
  app.footer("\n" + describeBenchmarks());
  addParticipants(app, options);
  addTransport(app, options, raw);
  addWork(app, options, raw);
  addComparison(app, options);
  addReport(app, options);
  app.add_option("NAME", options.name, "the benchmark; see below");
  command_line::parse(app, argc, argv);
  take(app, raw, options);
  refuseIgnored(app, options);
  validate(options);
  return options;
}

}  // namespace benchmark
