// The threads of one rank that run one benchmark at one size together.
#pragma once

#include <atomic>
#include <barrier>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "benchmarks/benchmark/options.h"
#include "benchmarks/benchmark/registry.h"
#include "benchmarks/benchmark/report.h"

namespace benchmark {

class Team {
 public:
  // One context per thread; `report` is null on all ranks but 0.
  Team(const Options& options, const Entry& entry,
       std::vector<std::shared_ptr<gloo::Context>> contexts, Report* report);

  int size() const { return int(contexts_.size()); }

  // The part of one thread. Never throws.
  void work(int thread, size_t elements);

  // Of one that could not even be started, too.
  void fail(std::exception_ptr error, int thread);

  // After all threads have ended: the times in nanoseconds, or throws the
  // first thread's exception.
  std::vector<double> finish();

 private:
  void workOrThrow(int thread, size_t elements);
  std::vector<double> iterate(Benchmark& benchmark, size_t first, size_t count,
                              int thread, size_t bytes);
  // All threads agree with all ranks on the number of iterations. The time is
  // what one of this thread's iterations takes.
  size_t agree(int thread, double nanosPerIteration);
  size_t countFor(double nanosPerIteration) const;

  const Options& options_;
  const Entry& entry_;
  const std::vector<std::shared_ptr<gloo::Context>> contexts_;
  Report* const report_;

  std::barrier<> barrier_;
  std::atomic<bool> failed_{false};
  std::atomic<size_t> count_{0};
  std::vector<double> warmups_;  // by thread
  std::mutex mutex_;
  std::exception_ptr error_;   // of the first thread that failed
  std::vector<double> nanos_;  // of all threads
};

}  // namespace benchmark
