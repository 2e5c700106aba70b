// What ranks offer of their memory, where the others' lines change while they
// are read.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "algorithms/direct.h"
#include "algorithms/state.h"
#include "gloo/common/error.h"
#include "tests/support/fake_channel.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

using internal::LaneLine;
using internal::Place;

constexpr int kRanks = 3;
constexpr size_t kCount = 8192;
constexpr uint64_t kKnown = 1;  // the memory that all have mapped

// As it stands in a line.
struct Offered {
  Place input;
  Place output;
  uint64_t isNew = 0;
};

// Rank 0's. The others have published all rounds, and say what the test wants.
class OffersLane final : public internal::Lane {
 public:
  OffersLane(uint64_t check, uint64_t bytes) : memory_(kCount) {
    rank_ = 0;
    size_ = kRanks;
    lines_ = storage_.data();
    bells_ = bellStorage_.data();
    failed_ = &hasFailed_;
    for (LaneLine& line : storage_) {
      line.round = &line - storage_.data() < 2 ? 0 : UINT64_MAX;
      line.check = check;
      line.bytes = bytes;
    }
    for (int rank = 1; rank < kRanks; rank++) {
      say(rank, {{kKnown, 0}, {kKnown, 0}, 0});
    }
  }

  void say(int rank, const Offered& said) {
    for (uint64_t round = 0; round < 2; round++) {
      std::memcpy(line(rank, round).payload, &said, sizeof(said));
    }
  }

  Place placeOf(const void*, size_t, bool*) override { return {kKnown, 0}; }
  void lend(uint64_t) override {}
  void settle(uint64_t, bool) override {}
  char* map(int rank, const Place& place, size_t) override {
    if (rank == 1) {
      say(2, {{77, 0}, {77, 0}, 1});  // what nobody has, as if it were new
    }
    return place.memory == kKnown ? reinterpret_cast<char*>(memory_.data())
                                  : nullptr;
  }
  void withdraw(const Place&, size_t) noexcept override {}
  bool isWithdrawn(const Place&, size_t) override { return false; }

 private:
  void ring(int) override {}
  Outcome waitLong(int, uint64_t, Deadline) override {
    return Outcome::kTimeout;
  }

  std::array<LaneLine, size_t{2} * kRanks> storage_;
  std::array<std::atomic<uint32_t>, kRanks> bellStorage_{};
  std::atomic<bool> hasFailed_{false};
  std::vector<int64_t> memory_;
};

TEST(OffersTest, ALineThatChangesBetweenTwoLooksGivesNoMemory) {
  Request request;
  request.collective = Collective::kAllreduce;
  request.elementSize = sizeof(int64_t);
  request.counts.count = kCount;
  const std::vector<int64_t> in(kCount);
  std::vector<int64_t> out(kCount);
  Arguments arguments;
  arguments.input = in.data();
  arguments.output = out.data();
  arguments.kernel = internal::kernelFor(internal::ElementType::kInt64,
                                         internal::Reduction::kSum);
  arguments.timeout = std::chrono::seconds(10);
  testing_support::FakeWorld world(kRanks);
  OffersLane lane(5, sharedBytes(request.collective, kRanks, request.counts,
                                 request.elementSize));
  const DirectParameters parameters = shippedDirectParameters(kRanks);
  DirectRun run(world.channel(0), lane, parameters, request, arguments,
                {5, 0, false}, std::chrono::milliseconds(0));
  try {
    run.run();
    FAIL() << "nothing was thrown";
  } catch (const IoException& e) {
    EXPECT_NE(std::string(e.what()).find("does not have mapped"),
              std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace algorithms
GLOO_NAMESPACE_END
