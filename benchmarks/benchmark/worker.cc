#include "benchmarks/benchmark/worker.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>

#include "gloo/broadcast.h"

namespace benchmark {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMinIterations = 5;
constexpr size_t kMaxIterations = 1000000;
constexpr uint32_t kAgreementTag = 0x424d4152;  // apart from the benchmarks'

double nanosSince(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// Thrown by threads that end because another one has failed.
struct OtherFailed : std::runtime_error {
  OtherFailed() : std::runtime_error("another thread has failed") {}
};

}  // namespace

Team::Team(const Options& options, const Entry& entry,
           std::vector<std::shared_ptr<gloo::Context>> contexts, Report* report)
    : options_(options),
      entry_(entry),
      contexts_(std::move(contexts)),
      report_(report),
      barrier_(std::ptrdiff_t(contexts_.size())),
      warmups_(contexts_.size()) {}

void Team::work(int thread, size_t elements) {
  try {
    workOrThrow(thread, elements);
  } catch (...) {
    fail(std::current_exception(), thread);
  }
}

void Team::fail(std::exception_ptr error, int thread) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (error_ == nullptr) {
      error_ = std::move(error);
    }
  }
  failed_.store(true);
  barrier_.arrive_and_drop();
  // The same thread of the other ranks must not wait for this one.
  contexts_[size_t(thread)]->closeConnections();
}

std::vector<double> Team::finish() {
  if (error_ != nullptr) {
    std::rethrow_exception(error_);
  }
  return std::move(nanos_);
}

void Team::workOrThrow(int thread, size_t elements) {
  const Make make = options_.halfPrecision ? entry_.makeHalf : entry_.makeFloat;
  const auto benchmark = make({contexts_[size_t(thread)], &options_, elements});
  const size_t bytes = elements * (options_.halfPrecision ? 2 : 4);
  const size_t warmups = size_t(options_.warmupIterations);
  // At least one iteration tells how long they take.
  const size_t trials = std::max<size_t>(warmups, 1);
  const auto start = Clock::now();
  iterate(*benchmark, 0, trials, thread, bytes);
  const size_t count = agree(thread, nanosSince(start) / double(trials));
  auto times = iterate(*benchmark, trials, count, thread, bytes);
  std::lock_guard<std::mutex> lock(mutex_);
  nanos_.insert(nanos_.end(), times.begin(), times.end());
}

std::vector<double> Team::iterate(Benchmark& benchmark, size_t first,
                                  size_t count, int thread, size_t bytes) {
  std::vector<double> nanos;
  nanos.reserve(count);
  for (size_t i = first; i < first + count; i++) {
    benchmark.fill(i);
    const auto start = Clock::now();
    benchmark.run();
    benchmark.touch();
    nanos.push_back(nanosSince(start));
    if (options_.verify) {
      const std::string errors = benchmark.check(i);
      if (!errors.empty()) {
        throw std::runtime_error("wrong result of " + options_.name + ", " +
                                 std::to_string(bytes) + " bytes: " + errors);
      }
    }
    if (report_ != nullptr && thread == 0) {
      report_->progress(bytes, i - first + 1, count);
    }
  }
  return nanos;
}

size_t Team::countFor(double nanosPerIteration) const {
  if (options_.iterationCount) {
    return *options_.iterationCount;
  }
  const auto byDefault = options_.elements || !entry_.hasSizes
                             ? std::chrono::milliseconds(2000)
                             : std::chrono::milliseconds(500);
  const std::chrono::nanoseconds time =
      options_.iterationTime.value_or(byDefault);
  const double count = double(time.count()) / std::max(nanosPerIteration, 1.0);
  return size_t(
      std::clamp(count, double(kMinIterations), double(kMaxIterations)));
}

size_t Team::agree(int thread, double nanosPerIteration) {
  warmups_[size_t(thread)] = nanosPerIteration;
  barrier_.arrive_and_wait();
  if (thread == 0 && !failed_) {
    const double slowest = *std::max_element(warmups_.begin(), warmups_.end());
    uint64_t count = countFor(slowest);
    gloo::BroadcastOptions broadcast(contexts_[0]);
    broadcast.setOutput(&count, 1);
    broadcast.setRoot(0);
    broadcast.setTag(kAgreementTag);
    gloo::broadcast(broadcast);
    count_.store(count);
  }
  barrier_.arrive_and_wait();
  if (failed_) {
    throw OtherFailed();
  }
  return count_.load();
}

}  // namespace benchmark
