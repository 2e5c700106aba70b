#include "benchmarks/benchmark/runner.h"

#include <memory>
#include <string>
#include <thread>

#include "benchmarks/benchmark/compare_algorithms.h"
#include "benchmarks/benchmark/contest.h"
#include "benchmarks/benchmark/device.h"
#include "benchmarks/benchmark/registry.h"
#include "benchmarks/benchmark/report.h"
#include "benchmarks/benchmark/tune.h"
#include "benchmarks/benchmark/tune_file.h"
#include "benchmarks/benchmark/worker.h"
#include "benchmarks/support/links.h"
#include "gloo/rendezvous/prefix_store.h"

namespace benchmark {
namespace {

using ContextPtr = std::shared_ptr<support::MeasuredContext>;
using Devices = std::vector<std::shared_ptr<gloo::transport::Device>>;

// One for each thread, on the devices in turn.
std::vector<ContextPtr> connectAll(const Options& options, Devices& devices) {
  const auto store = makeStore(options);
  std::vector<ContextPtr> contexts;
  for (int i = 0; i < options.threads; i++) {
    auto context = std::make_shared<support::MeasuredContext>(
        options.rank, options.size, options.base);
    auto own = std::make_shared<gloo::rendezvous::PrefixStore>(
        "thread" + std::to_string(i), store);
    context->connectFullMesh(own, devices[size_t(i) % devices.size()]);
    for (int peer = 0; options.sync && peer < options.size; peer++) {
      if (peer != options.rank) {
        context->getPair(peer)->setSync(true, options.busyPoll);
      }
    }
    contexts.push_back(std::move(context));
  }
  return contexts;
}

// Elements of a sweep: 4 B to 64 MiB by powers of four, or a few less where the
// benchmark wants equal parts; what is too short for these is left out.
std::vector<size_t> sizesOf(const Options& options, const Entry& entry) {
  if (!entry.hasSizes) {
    return {0};
  }
  if (options.elements) {
    return {equalParts(entry, options.size, options, *options.elements)};
  }
  constexpr size_t kSmallest = 4, kLargest = size_t{64} << 20;
  const size_t elementSize = options.halfPrecision ? 2 : 4;
  std::vector<size_t> sizes;
  for (size_t bytes = kSmallest; bytes <= kLargest; bytes *= 4) {
    const size_t elements =
        equalParts(entry, options.size, options, bytes / elementSize);
    if (elements > 0) {
      sizes.push_back(elements);
    }
  }
  return sizes;
}

// All threads at one size; rank 0's merged times.
std::vector<double> runThreads(Team& team, size_t elements) {
  std::vector<std::thread> threads;
  for (int i = 1; i < team.size(); i++) {
    try {
      threads.emplace_back([&team, i, elements] { team.work(i, elements); });
    } catch (const std::exception& e) {
      const std::string why =
          "cannot start thread " + std::to_string(i + 1) + ": " + e.what();
      team.fail(std::make_exception_ptr(std::runtime_error(why)), i);
    }
  }
  team.work(0, elements);
  for (auto& thread : threads) {
    thread.join();
  }
  return team.finish();
}

}  // namespace

void runRank(const Options& options) {
  if (comparesAlgorithms(options)) {
    if (!options.tuneFile.empty() && options.rank == 0) {
      checkTuneFile(options);
    }
    Contest contest(options, makeDevices(options)[0], makeStore(options));
    if (options.allAlgorithms) {
      compareAlgorithms(options, contest);
    } else {
      tune(options, contest);
    }
    return;
  }
  const Entry& entry = *findBenchmark(options.name);
  Devices devices = makeDevices(options);
  const auto contexts = connectAll(options, devices);
  std::unique_ptr<Report> report;
  if (options.rank == 0) {
    report = std::make_unique<Report>(
        options,
        Conditions{options.size, devices[0]->str(), contexts[0]->links()});
    report->header();
  }
  for (const size_t elements : sizesOf(options, entry)) {
    Team team(options, entry, {contexts.begin(), contexts.end()}, report.get());
    const auto nanos = runThreads(team, elements);
    if (report != nullptr) {
      report->add(summarise(nanos, elements, options.halfPrecision ? 2 : 4,
                            entry.traffic(options.size, options)));
    }
  }
  if (report != nullptr && !options.jsonFile.empty()) {
    report->writeJson();
  }
  for (const auto& context : contexts) {
    context->closeConnections();
  }
}

}  // namespace benchmark
