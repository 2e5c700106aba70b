#include "values.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace measure {
namespace {

// Elements after which values repeat. A prime: what lies a power of two from
// its place, as a segment that was mixed up with another does, must not look
// right.
constexpr size_t kPattern = 127;

constexpr std::array<const char*, 8> kCollectives = {
    "allreduce",      "reduce",   "broadcast", "allgather",
    "reduce_scatter", "alltoall", "barrier",   "pingpong"};

}  // namespace

bool isCollective(const std::string& name) {
  return std::find(kCollectives.begin(), kCollectives.end(), name) !=
         kCollectives.end();
}

bool runsWith(const std::string& collective, int size) {
  return collective != "pingpong" || size == 2;
}

bool worksInPlace(const std::string& collective) {
  return collective == "allreduce" || collective == "broadcast" ||
         collective == "barrier";
}

Work shapeOf(const std::string& collective, size_t bytes, int size) {
  Work work;
  work.collective = collective;
  if (collective == "barrier") {
    return work;
  }
  const bool divided = collective == "allgather" || collective == "alltoall" ||
                       collective == "reduce_scatter";
  work.blockElements =
      std::max<size_t>(bytes / sizeof(float) / (divided ? size : 1),
                       collective == "pingpong" ? 2 : 1);
  const size_t whole = work.blockElements * (divided ? size : 1);
  work.inputElements = collective == "allgather" ? work.blockElements : whole;
  work.outputElements =
      collective == "reduce_scatter" ? work.blockElements : whole;
  work.bytes = whole * sizeof(float);
  if (collective == "pingpong") {
    constexpr size_t kTogether = 4096;
    work.roundTrips = int(std::max<size_t>(kTogether / work.bytes, 1));
  }
  return work;
}

Values::Values(const Work& work, int rank, int size)
    : work_(work),
      rank_(rank),
      size_(size),
      hasResult_(work.outputElements > 0 &&
                 (work.collective != "reduce" || rank == 0)) {}

float Values::inputOf(int rank, size_t element, size_t iteration) const {
  return float(element % kPattern + size_t(rank) * 3 + iteration % 100);
}

void Values::fill(size_t iteration) const {
  std::array<float, kPattern> pattern;
  for (size_t i = 0; i < kPattern; i++) {
    pattern[i] = inputOf(rank_, i, iteration);
  }
  float* data = work_.input;
  const size_t n = work_.inputElements;
  for (size_t i = 0; i < n; i += kPattern) {
    std::copy_n(pattern.begin(), std::min(kPattern, n - i), data + i);
  }
}

float Values::expected(size_t element, size_t iteration) const {
  const std::string& name = work_.collective;
  const size_t block = work_.blockElements;
  if (name == "broadcast" || name == "pingpong") {
    return inputOf(0, element, iteration);
  }
  if (name == "allgather") {
    return inputOf(int(element / block), element % block, iteration);
  }
  if (name == "alltoall") {
    return inputOf(int(element / block),
                   size_t(rank_) * block + element % block, iteration);
  }
  if (name == "reduce_scatter") {
    element += size_t(rank_) * block;
  }
  float sum = 0;
  for (int rank = 0; rank < size_; rank++) {
    sum += inputOf(rank, element, iteration);
  }
  return sum;
}

void Values::check(size_t iteration, bool all) const {
  if (!hasResult_) {
    return;
  }
  const size_t n = work_.outputElements;
  const size_t step = all ? 1 : std::max<size_t>(n / 4, 1);
  for (size_t i = 0; i < n; i += step) {
    const float want = expected(i, iteration);
    if (work_.output[i] != want) {
      throw std::runtime_error("wrong result of " + work_.collective + ", " +
                               std::to_string(work_.bytes) +
                               " bytes: element " + std::to_string(i) + " is " +
                               std::to_string(work_.output[i]) + ", not " +
                               std::to_string(want));
    }
  }
}

}  // namespace measure
