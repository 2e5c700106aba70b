// A rank's collectives beside others that only their lines speak for, which a
// test may change at any moment.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "algorithms/direct.h"
#include "algorithms/state.h"
#include "gloo/common/aligned_allocator.h"
#include "tests/support/fake_channel.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::offers {

using internal::LaneLine;
using internal::Place;

constexpr size_t kCount = 8192;
constexpr size_t kSlotBytes = size_t{64} << 10;
constexpr uint64_t kKnown = 11;    // the memory that all have mapped
constexpr uint64_t kUnknown = 12;  // that nobody has
constexpr uint64_t kCheck = 5;
constexpr int kMostRounds = 1000;

// As it stands in a line.
struct Offered {
  Place input;
  Place output;
  uint64_t note = 0;  // 1: new; of ordinary memory: ns through slots, ns read
};

constexpr Offered kGood{{kKnown, 0}, {kKnown, 0}, 0};

// Rank 0's. The others have published all rounds, and say what the test wants.
class OffersLane final : public internal::Lane {
 public:
  OffersLane(int ranks, uint64_t bytes)
      : lineStorage_(2 * static_cast<size_t>(ranks)),
        bellStorage_(static_cast<size_t>(ranks)),
        slotStorage_(2 * static_cast<size_t>(ranks) * kSlotBytes),
        memory_(kCount) {
    rank_ = 0;
    size_ = ranks;
    lines_ = lineStorage_.data();
    bells_ = bellStorage_.data();
    slots_ = slotStorage_.data();
    slotBytes_ = kSlotBytes;
    failed_ = &hasFailed_;
    for (LaneLine& line : lineStorage_) {
      line.round = &line - lines_ < 2 ? 0 : UINT64_MAX;
      line.check = kCheck;
      line.bytes = bytes;
    }
    bellStorage_[1] = bellFor(0);  // it is rung in each round
  }

  void say(int rank, const Offered& said) {
    for (uint64_t round = 0; round < 2; round++) {
      std::memcpy(line(rank, round).payload, &said, sizeof(said));
    }
  }
  void sayAll(const Offered& said) {
    for (int rank = 1; rank < size_; rank++) {
      say(rank, said);
    }
  }

  Place own{kKnown, 0};  // where its vectors are
  bool mayRead = false;
  bool readSucceeds = true;
  int countOfReads = 0;
  std::function<void(int rank)> onMap = [](int) {};
  std::function<void()> onPublish = [] {};
  std::function<void()> onRead = [] {};

  Place placeOf(const void*, size_t, bool*) override { return own; }
  void lend(uint64_t) override {}
  void settle(uint64_t, bool) override {}
  char* map(int rank, const Place& place, size_t, bool) override {
    onMap(rank);
    return place.memory == kKnown ? reinterpret_cast<char*>(memory_.data())
                                  : nullptr;
  }
  void withdraw(const Place&, size_t) noexcept override {}
  bool isWithdrawn(const Place&, size_t) override { return false; }
  void letGo() noexcept override { hasLetGo_ = true; }
  bool reads() const override { return mayRead; }
  bool read(int, char* to, uint64_t from, size_t bytes) override {
    countOfReads++;
    onRead();
    std::memcpy(to, reinterpret_cast<const char*>(from), bytes);  // NOLINT
    return readSucceeds;
  }
  void stopReading() override { mayRead = false; }
  Outcome wait(int, uint64_t, Deadline) override { return Outcome::kTimeout; }
  void tellRepeats() override {}
  bool hasLetGo() override {
    hasFailed_ = hasLetGo_;  // the news comes
    return hasLetGo_;
  }

 private:
  void ring(int) override {
    onPublish();
    if (round() > kMostRounds) {
      throw std::logic_error("more rounds than any of these takes");
    }
  }

  std::vector<LaneLine> lineStorage_;
  std::vector<std::atomic<uint32_t>> bellStorage_;
  std::vector<char, aligned_allocator<char, 64>> slotStorage_;
  std::atomic<bool> hasFailed_{false};
  bool hasLetGo_ = false;
  std::vector<int64_t> memory_;
};

// A collective of rank 0, with the others of its lane.
class Call {
 public:
  Call(int ranks, Collective collective, int root = 0, size_t count = kCount)
      : parameters(shippedDirectParameters(ranks)),
        in_(count * static_cast<size_t>(ranks)),
        out_(in_.size()),
        world_(ranks) {
    request_.collective = collective;
    request_.elementSize = sizeof(int64_t);
    request_.counts.count = count;
    request_.root = root;
    arguments_.input = in_.data();
    arguments_.output = out_.data();
    arguments_.kernel = internal::kernelFor(internal::ElementType::kInt64,
                                            internal::Reduction::kSum);
    arguments_.timeout = std::chrono::seconds(10);
    parameters.rootedBytes = {};  // else a slot is read, whoever offers
    lane.emplace(ranks, sharedBytes(collective, ranks, request_.counts,
                                    request_.elementSize));
  }

  void operator()() {
    DirectRun(world_.channel(0), *lane, parameters, request_,
              sizesOf(request_, parameters, lane->size(), lane->slotBytes(),
                      lane->crowded()),
              arguments_, {kCheck, 0, false}, std::chrono::milliseconds(0))
        .run();
  }

  const std::vector<int64_t>& result() const { return out_; }

  DirectParameters parameters;
  std::optional<OffersLane> lane;

 private:
  std::vector<int64_t> in_;
  std::vector<int64_t> out_;
  testing_support::FakeWorld world_;
  Request request_;
  Arguments arguments_;
};

// What it throws; empty: nothing.
inline std::string errorOf(Call& call) {
  try {
    call();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

}  // namespace algorithms::offers
GLOO_NAMESPACE_END
