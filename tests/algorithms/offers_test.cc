// What ranks offer of their memory, where the others' lines change while they
// are read.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "algorithms/direct.h"
#include "algorithms/state.h"
#include "gloo/common/aligned_allocator.h"
#include "gloo/common/error.h"
#include "gloo/common/string.h"
#include "tests/support/fake_channel.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

using internal::LaneLine;
using internal::Place;

constexpr size_t kCount = 8192;
constexpr size_t kSlotBytes = size_t{64} << 10;
constexpr uint64_t kKnown = 11;    // the memory that all have mapped
constexpr uint64_t kUnknown = 12;  // that nobody has
constexpr uint64_t kCheck = 5;
constexpr int kMostRounds = 100;

// As it stands in a line.
struct Offered {
  Place input;
  Place output;
  uint64_t isNew = 0;
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
  char* map(int rank, const Place& place, size_t) override {
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
  Outcome waitLong(int, uint64_t, Deadline) override {
    return Outcome::kTimeout;
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
    DirectRun(world_.channel(0), *lane, parameters, request_, arguments_,
              {kCheck, 0, false}, std::chrono::milliseconds(0))
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
std::string errorOf(Call& call) {
  try {
    call();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

TEST(OffersTest, ALineThatChangesBetweenTwoLooksGivesNoMemory) {
  Call call(3, Collective::kAllreduce);
  call.lane->sayAll(kGood);
  call.lane->onMap = [&](int rank) {
    if (rank == 1) {
      call.lane->say(2,
                     {{kUnknown, 0}, {kUnknown, 0}, 1});  // as if it were new
    }
  };
  EXPECT_NE(errorOf(call).find("does not have mapped"), std::string::npos);
}

struct Case {
  Collective collective;
  int root;
};
constexpr Case kCases[] = {
    {Collective::kAllreduce, 0},     {Collective::kReduce, 0},
    {Collective::kReduce, 1},        {Collective::kBroadcast, 1},
    {Collective::kAllgather, 0},     {Collective::kAlltoall, 0},
    {Collective::kReduceScatter, 0},
};

// ---- What is in ordinary memory is read there, by all or by nobody.

// Of an alltoall of 3 ranks, of which the others have offered `said` and then
// vote so. Their memory holds 7 everywhere, and their slots nothing.
struct ReadCall : Call {
  ReadCall() : Call(3, Collective::kAlltoall) {
    parameters.readBytes = DirectParameters::kLeastInPlace;
    lane->own = {};
    lane->mayRead = true;
  }
  Offered offered() const {
    return {
        {Place::kOrdinary, reinterpret_cast<uintptr_t>(theirs.data())}, {}, 0};
  }
  // In the round after the offers, whose lines are those of even rounds.
  void vote(int rank, bool all) {
    Offered said;
    said.input.memory = all ? 1 : 0;
    std::memcpy(lane->line(rank, 2).payload, &said, sizeof(said));
  }
  size_t sevens() const {
    return static_cast<size_t>(std::count(result().begin(), result().end(), 7));
  }

  std::vector<int64_t> theirs = std::vector<int64_t>(3 * kCount, 7);
};

TEST(OffersTest, OrdinaryMemoryIsReadIfAllOfferIt) {
  ReadCall call;
  call.lane->sayAll(call.offered());
  EXPECT_EQ(errorOf(call), "");
  EXPECT_EQ(call.sevens(), 2 * kCount);
  EXPECT_EQ(call.lane->round(), 2u);
  EXPECT_TRUE(call.lane->mayRead);
}

// Then all of them go through slots, in which the others have put nothing.
TEST(OffersTest, WhereOneCannotReadAllBeginAgain) {
  for (const bool mine : {true, false}) {
    ReadCall call;
    call.lane->sayAll(call.offered());
    call.lane->readSucceeds = !mine;
    if (!mine) {
      call.vote(2, false);
    }
    EXPECT_EQ(errorOf(call), "");
    EXPECT_EQ(call.sevens(), 0u);
    EXPECT_GT(call.lane->round(), 2u);
    EXPECT_FALSE(call.lane->mayRead);
  }
}

TEST(OffersTest, NothingIsReadIfNotAllOfferOrdinaryMemory) {
  for (const Offered& other : {Offered{}, kGood}) {
    ReadCall call;
    call.lane->sayAll(call.offered());
    call.lane->say(2, other);
    EXPECT_EQ(errorOf(call), "");
    EXPECT_EQ(call.lane->countOfReads, 0);
    EXPECT_EQ(call.sevens(), 0u);
  }
}

// Where nothing was mapped, nothing is in place.
TEST(OffersTest, WhatOthersWriteInTheOwnLineIsNotItsOffer) {
  for (const auto& [collective, root] : kCases) {
    if (collective == Collective::kBroadcast) {
      continue;  // the others have no say
    }
    Call call(3, collective, root);
    call.parameters.chunkBytes = DirectParameters::kLeastChunk;
    const Offered ordinary{{Place::kOrdinary, 0}, {Place::kOrdinary, 0}, 0};
    call.lane->sayAll(ordinary);
    call.lane->onPublish = [&] { call.lane->say(0, ordinary); };
    EXPECT_EQ(errorOf(call), "") << nameOf(collective);
    EXPECT_EQ(call.lane->countOfReads, 0) << nameOf(collective);
    EXPECT_GT(call.lane->round(), 2u) << nameOf(collective);
  }
}

// ---- Who throws may change what others read.

TEST(OffersTest, NorDoesWhatTheKernelReadAfterARankLetGo) {
  ReadCall call;
  call.lane->sayAll(call.offered());
  call.lane->onRead = [&] { call.lane->letGo(); };
  EXPECT_NE(errorOf(call), "");
}

TEST(OffersTest, ARankThatFailsAfterItHasReadLetsGo) {
  ReadCall call;
  call.lane->sayAll(call.offered());
  call.lane->line(1, 2).round = 1;  // still reads
  EXPECT_NE(errorOf(call).find("Timed out"), std::string::npos);
  EXPECT_TRUE(call.lane->hasLetGo());
}

TEST(OffersTest, WhatWasReadAfterARankLetGoDoesNotCount) {
  for (const auto& [collective, root] : kCases) {
    Call call(3, collective, root);
    call.lane->sayAll(kGood);
    call.lane->onMap = [&](int) { call.lane->letGo(); };
    EXPECT_NE(errorOf(call), "") << nameOf(collective);
  }
}

TEST(OffersTest, ARankThatFailsOnceItHasSaidThatItIsThroughLetsGo) {
  for (const auto& [collective, root] : kCases) {
    Call call(3, collective, root);
    call.lane->sayAll(kGood);
    call.lane->line(1, 2).round = 1;  // still reads
    EXPECT_NE(errorOf(call).find("Timed out"), std::string::npos);
    EXPECT_TRUE(call.lane->hasLetGo()) << nameOf(collective);
  }
}

// ---- Who offers in each round does not make the others begin for ever.

// Of an operation whose others offer, or do not, what this rank does not.
uint64_t roundsOf(Call& call, bool offered) {
  call.lane->own = {};
  call.lane->sayAll(offered ? Offered{{kUnknown, 0}, {kUnknown, 0}, 1}
                            : Offered{});
  EXPECT_EQ(errorOf(call), "");
  return call.lane->round();
}

TEST(OffersTest, OnlyTheFirstOneIsHeard) {
  for (const int ranks : {2, 3}) {
    for (const Case& one : kCases) {
      SCOPED_TRACE(MakeString(nameOf(one.collective), " of ", ranks));
      for (const bool halved : {true, false}) {
        const auto rounds = [&](bool offered) {
          Call call(ranks, one.collective, one.root);
          call.parameters.halvedBytes = halved ? 0 : SIZE_MAX;
          if (!halved) {  // what is longer than a chunk
            call.parameters.rootedBytes = {SIZE_MAX, SIZE_MAX};
            call.parameters.chunkBytes = DirectParameters::kLeastChunk;
          }
          return roundsOf(call, offered);
        };
        const uint64_t usual = rounds(false);
        EXPECT_GT(rounds(true), usual);
        // (A broadcast's root hands over, and the others vote.)
        EXPECT_LE(rounds(true), usual + 3);
      }
    }
  }
}

TEST(OffersTest, NoneIsHeardOfWhatIsShorter) {
  constexpr size_t kShort = 128;  // longer than a line
  for (const int ranks : {2, 3}) {
    for (const auto& [collective, root] : kCases) {
      Call offered(ranks, collective, root, kShort);
      Call usual(ranks, collective, root, kShort);
      EXPECT_EQ(roundsOf(offered, true), roundsOf(usual, false))
          << nameOf(collective) << " of " << ranks;
    }
  }
}

}  // namespace
}  // namespace algorithms
GLOO_NAMESPACE_END
