// Ranks that claim lanes, on memory of their own.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "transport/base/lane_claims.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

constexpr std::chrono::milliseconds kClaimTimeout{30000};

class ClaimingRanks {
 public:
  explicit ClaimingRanks(int count)
      : memory_(std::aligned_alloc(128, LaneClaims::memoryBytes(count))) {
    std::memset(memory_.get(), 0, LaneClaims::memoryBytes(count));
    for (int rank = 0; rank < count; rank++) {
      ranks_.push_back(std::make_unique<LaneClaims>(
          static_cast<char*>(memory_.get()), rank, count, failed_));
    }
  }
  LaneClaims& operator[](int rank) {
    return *ranks_[static_cast<size_t>(rank)];
  }
  int size() const { return static_cast<int>(ranks_.size()); }
  void fail() { failed_ = true; }
  // As of a rank that was stopped while it had the lock: the memory begins
  // with it.
  std::atomic<uint32_t>& owner() {
    return *static_cast<std::atomic<uint32_t>*>(memory_.get());
  }
  // Some words of it, at random.
  void scribble(std::mt19937_64& random) {
    auto* const words = static_cast<uint64_t*>(memory_.get());
    const size_t count = LaneClaims::memoryBytes(size()) / sizeof(uint64_t);
    for (int i = 0; i < 20; i++) {
      words[random() % count] = random() % 2 == 0 ? random() : random() % 8;
    }
  }
  // Of a rank in a lane: behind the line of the lock and that of the claims.
  std::atomic<uint64_t>& count(int lane, int rank = 0) {
    char* const counts = static_cast<char*>(memory_.get()) + 128;
    return *reinterpret_cast<std::atomic<uint64_t>*>(
        counts + (lane * size() + rank) * 128);
  }
  // As if nobody were there.
  void makeIdle(int lane) {
    for (int rank = 0; rank < size(); rank++) {
      count(lane, rank) = 100;
    }
  }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  std::atomic<bool> failed_{false};
  std::vector<std::unique_ptr<LaneClaims>> ranks_;
};

// Of an operation, which begins: the lane, or -1.
inline int enter(LaneClaims& rank, uint64_t tag) {
  int lane = -1;
  const LaneClaims::Outcome outcome = rank.enter(tag, kClaimTimeout, &lane);
  EXPECT_TRUE(outcome == LaneClaims::Outcome::kLane ||
              outcome == LaneClaims::Outcome::kLinks);
  if (outcome != LaneClaims::Outcome::kLane) {
    return -1;
  }
  rank.goOn(lane);
  return lane;
}

inline void leave(LaneClaims& rank, int lane) {
  if (lane >= 0) {
    rank.leave(lane);
  }
}

}  // namespace transport::base
GLOO_NAMESPACE_END
