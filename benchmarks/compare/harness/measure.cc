#include "measure.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "page.h"
#include "ticks.h"
#include "values.h"

namespace measure {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kFloatsPerLine = 16;
constexpr size_t kMaxIterations = 100000;
constexpr size_t kMinIterations = 5;

double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Loads one value of each cache line; volatile keeps the loads.
void touch(const float* data, size_t elements) {
  volatile float sink = 0;
  for (size_t i = 0; i < elements; i += kFloatsPerLine) {
    sink = data[i];
  }
  if (elements > 0) {
    sink = data[elements - 1];
  }
  (void)sink;
}

class Runner {
 public:
  Runner(Program& program, const Arguments& arguments)
      : program_(program),
        arguments_(arguments),
        page_(arguments.directory + "/page", arguments.rank, arguments.size) {}

  void all() {
    page_.barrier();
    for (const auto& collective : arguments_.collectives) {
      if (!runsWith(collective, arguments_.size)) {
        continue;
      }
      auto sizes = arguments_.sizes;
      if (collective == "barrier") {
        sizes.resize(1);
      }
      allSizes(collective, sizes);
    }
    page_.barrier();
    program_.release();
  }

  void fail() { page_.fail(); }

 private:
  void allSizes(const std::string& collective,
                const std::vector<size_t>& sizes) {
    const auto modes = program_.modes(collective);
    if (modes.empty()) {
      return;
    }
    uint32_t dropped = 0;
    for (const size_t size : sizes) {
      const Work work = makeWork(collective, size);
      std::vector<double> times(modes.size(), 0);
      for (size_t i = 0; i < modes.size(); i++) {
        if ((dropped >> i & 1) == 0) {
          times[i] = one(work, modes[i]);
        }
      }
      if (arguments_.rank == 0) {
        page_.setDropped(dropped | hopeless(times));
      }
      page_.barrier();
      dropped = page_.dropped();
      page_.barrier();
    }
  }

  // The modes, as bits, that are not worth their time at larger sizes: above
  // 100 ms, and ten times slower than the fastest one.
  static uint32_t hopeless(const std::vector<double>& times) {
    double fastest = 1e30;
    for (const double time : times) {
      fastest = time > 0 ? std::min(fastest, time) : fastest;
    }
    uint32_t modes = 0;
    for (size_t i = 0; i < times.size(); i++) {
      if (times[i] > 1e5 && times[i] > 10 * fastest) {
        modes |= uint32_t{1} << i;
      }
    }
    return modes;
  }

  Work makeWork(const std::string& collective, size_t bytes) {
    Work work = shapeOf(collective, bytes, arguments_.size);
    work.input = vector(0, std::max<size_t>(work.inputElements, 1));
    const bool inPlace =
        worksInPlace(collective) || program_.resultInInput(collective);
    work.output = inPlace ? work.input : vector(1, work.outputElements);
    return work;
  }

  float* vector(int index, size_t elements) {
    const size_t before = arguments_.offset / sizeof(float);
    return program_.allocate(index, (before + elements) * sizeof(float)) +
           before;
  }

  // The median time in microseconds; on rank 0 only.
  double one(const Work& work, const std::string& mode) {
    const Operation operation = program_.prepare(work, mode);
    const Values values(work, arguments_.rank, arguments_.size);
    std::vector<double> times;
    // Of the first one that counts: the one before it, which warms up, may take
    // as long as a hundred others, most of a short budget.
    Clock::time_point start;
    const TickRate rate;
    if (arguments_.rank == 0) {
      page_.setStop(false);
    }
    for (size_t iteration = 0;; iteration++) {
      values.fill(iteration);
      page_.barrier();
      if (page_.stop()) {
        break;
      }
      start = iteration == 1 ? Clock::now() : start;
      const uint64_t before = page_.start();
      operation();
      touch(work.output, work.outputElements);
      page_.setTime(static_cast<double>(ticks() - before));
      page_.barrier();
      values.check(iteration, iteration == 0);
      if (arguments_.rank == 0 && iteration > 0) {
        times.push_back(page_.meanTime());
        page_.setStop(enough(times.size(), seconds(Clock::now() - start)));
      }
    }
    page_.barrier();
    checkLast(values, operation);
    if (arguments_.rank != 0) {
      return 0;
    }
    const double perTick = rate.microseconds();
    for (double& time : times) {
      time *= perTick / std::max(2 * work.roundTrips, 1);
    }
    std::sort(times.begin(), times.end());
    report(work, mode, times);
    return times[times.size() / 2];
  }

  bool enough(size_t iterations, double spent) const {
    return iterations >= kMaxIterations ||
           (spent >= arguments_.budget && iterations >= kMinIterations) ||
           (spent >= 8 * arguments_.budget && iterations > 0);
  }

  // Every element of one more result, after all the timed ones.
  void checkLast(const Values& values, const Operation& operation) {
    constexpr size_t kIteration = 77;
    values.fill(kIteration);
    page_.barrier();
    operation();
    values.check(kIteration, true);
    page_.barrier();
  }

  void report(const Work& work, const std::string& mode,
              const std::vector<double>& times) {
    printf(
        "{\"mode\": \"%s\", \"collective\": \"%s\", \"ranks\": %d, "
        "\"bytes\": %zu, \"p50_us\": %.3f, \"min_us\": %.3f, "
        "\"iterations\": %zu, \"links\": \"%s\"}\n",
        mode.c_str(), work.collective.c_str(), arguments_.size, work.bytes,
        times[times.size() / 2], times[0], times.size(),
        program_.links().c_str());
    fflush(stdout);
  }

  Program& program_;
  const Arguments& arguments_;
  Page page_;
};

}  // namespace

float* Program::allocate(int index, size_t bytes) {
  constexpr size_t kPage = 4096;
  const size_t size = (bytes + kPage - 1) / kPage * kPage;
  std::free(memory_[index]);
  memory_[index] = static_cast<float*>(std::aligned_alloc(kPage, size));
  if (memory_[index] == nullptr) {
    throw std::runtime_error("out of memory");
  }
  std::memset(memory_[index], 0, size);
  return memory_[index];
}

void Program::release() {
  for (float*& memory : memory_) {
    std::free(memory);
    memory = nullptr;
  }
}

void flushOutput() {
  if (fflush(stdout) != 0 || ferror(stdout) != 0) {
    throw std::runtime_error("not all output could be written to stdout");
  }
}

int run(Program& program, const Arguments& arguments) {
  try {
    Runner runner(program, arguments);
    try {
      runner.all();
      flushOutput();
    } catch (...) {
      runner.fail();
      throw;
    }
  } catch (const std::exception& e) {
    fprintf(stderr, "rank %d: %s\n", arguments.rank, e.what());
    return 1;
  }
  return 0;
}

}  // namespace measure
