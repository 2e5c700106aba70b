// What must happen when three ranks make calls that may contradict each other:
// computed from the schedules, by which messages leave although some never
// arrive, and who then waits for whom.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/plan.h"
#include "tests/algorithms/rank_call.h"

GLOO_NAMESPACE_BEGIN
namespace test {

enum class Expected {
  kSuccess,
  kMismatch,      // on all ranks, at once
  kNextMismatch,  // all return, the next call with this tag tells
  kTimeout,       // on all ranks, since somebody waits for what never comes
};

class MismatchOracle {
 public:
  // `direct`: all ranks have mapped the same memory.
  MismatchOracle(const std::vector<RankCall>& calls, bool direct);

  Expected expected() const;
  // Whether any of the calls is.
  bool isDirect() const;

 private:
  struct Rank {
    uint64_t word = 0;
    // Of a direct call: whose lines it reads.
    bool isDirect = false;
    std::vector<int> reads;
    std::unique_ptr<algorithms::Plan> plan;
    std::vector<bool> done;
    std::vector<int> sentTo;
  };

  void prepare(int rank, const RankCall& call, bool direct);
  void readLines();
  bool step();
  bool isReady(const Rank& rank, const algorithms::Action& action) const;
  bool perform(size_t self, const algorithms::Action& action);
  void tellAwaited();
  bool agree(size_t one, size_t other) const;
  // About what goes from one to the other of them.
  bool agreeOn(size_t self, size_t peer, bool sends) const;

  std::vector<Rank> ranks_;
  // A message, a line or what is awaited, to who learns of it.
  bool contradicts_ = false;
  bool waits_ = false;  // for the line of a rank that writes none
};

}  // namespace test
GLOO_NAMESPACE_END
