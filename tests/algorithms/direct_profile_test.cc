// The way that a collective takes where all ranks share memory is what rank 0's
// tuning file says, on all ranks: told by the number of rounds in its lane.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gloo/allreduce.h"
#include "gloo/alltoall.h"
#include "gloo/common/error.h"
#include "gloo/context.h"
#include "gloo/reduce.h"
#include "gloo/rendezvous/context.h"
#include "gloo/transport/shm/allocate.h"
#include "gloo/transport/shm/device.h"
#include "gloo/transport/tcp/device.h"
#include "gloo/types.h"
#include "tests/algorithms/lanes.h"
#include "tests/support/collectives.h"
#include "tests/support/spawn.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using ContextPtr = std::shared_ptr<Context>;

constexpr uint64_t kFlatOrSwapped = 1;
constexpr uint64_t kHalved = 2;   // one chunk
constexpr uint64_t kInPlace = 2;  // to offer, and to end
constexpr uint64_t kStaged = 3;   // one chunk

// What a tuning file says of that many ranks.
std::string text(int ranks, const std::string& direct) {
  return R"({"version": 1, "networks": [{"transport": "shm", "ranks": )" +
         std::to_string(ranks) +
         R"(, "latency": 1e-5, "overhead": 1e-6, "gap": 2e-6,
             "gap_per_byte": 1e-9, "reduce_per_byte": 1e-10,
             "copy_per_byte": 2e-10, "segment_bytes": 50000, "direct": )" +
         direct + "}]}";
}

void useFile(const ScratchDirectory& directory, const std::string& name,
             const std::string& content) {
  const std::string path = directory.path() + "/" + name;
  std::ofstream(path) << content;
  ASSERT_EQ(0, ::setenv("GLOO_TUNING_FILE", path.c_str(), 1));
}

using Make = std::function<std::shared_ptr<transport::Device>()>;

std::shared_ptr<transport::Device> onShm() {
  return transport::shm::CreateDevice();
}

ContextPtr connect(const Seat& seat, const Make& makeDevice) {
  auto context = std::make_shared<rendezvous::Context>(seat.rank, seat.size);
  context->setTimeout(contextTimeout());
  auto device = makeDevice();
  context->connectFullMesh(seat.store, device);
  return context;
}

// On ranks of which the first alone has a file; without `direct` none has.
void onRanks(int size, const std::string& direct,
             const std::function<void(const ContextPtr&)>& fn,
             const Make& makeDevice = &onShm) {
  const ScratchDirectory directory;
  spawnSeats(Mode::kProcesses, size, [&](Seat& seat) {
    ::unsetenv("GLOO_TUNING_FILE");
    if (seat.rank == 0 && !direct.empty()) {
      useFile(directory, "tuning.json", text(seat.size, direct));
    }
    fn(connect(seat, makeDevice));
  });
}

// Of an allreduce in that memory. None: it took the links.
uint64_t roundsIn(const ContextPtr& context, int* values, size_t bytes) {
  const size_t count = bytes / sizeof(int);
  AllreduceOptions opts(context);
  opts.setOutput(values, count);
  opts.setReduceFunction(testing_support::adder<int>());
  // Once the memory is known.
  std::fill_n(values, count, 1);
  allreduce(opts);
  const uint64_t before = laneOf(context, kAllreduceSlotPrefix, 0).round();
  std::fill_n(values, count, context->rank + 1);
  allreduce(opts);
  const int sum = context->size * (context->size + 1) / 2;
  EXPECT_EQ(std::vector<int>(count, sum),
            std::vector<int>(values, values + count));
  return laneOf(context, kAllreduceSlotPrefix, 0).round() - before;
}

uint64_t roundsOf(const ContextPtr& context, size_t bytes) {
  std::vector<int> values(bytes / sizeof(int));
  return roundsIn(context, values.data(), bytes);
}

TEST(DirectProfile, SaysUpToWhichSizeReductionsAreFlat) {
  onRanks(3, "", [](const ContextPtr& context) {
    EXPECT_EQ(kFlatOrSwapped, roundsOf(context, 4000));
    EXPECT_EQ(kStaged, roundsOf(context, 40000));
  });
  onRanks(3, R"({"flat_bytes": 7999})", [](const ContextPtr& context) {
    EXPECT_EQ(kStaged, roundsOf(context, 8000));
    EXPECT_EQ(kFlatOrSwapped, roundsOf(context, 7996));
  });
}

// Of a reduce to rank 1.
uint64_t reduceRoundsOf(const ContextPtr& context, int* values, size_t bytes) {
  const size_t count = bytes / sizeof(int);
  std::vector<int> result(count);
  ReduceOptions opts(context);
  opts.setInput(values, count);
  opts.setOutput(result.data(), count);
  opts.setRoot(1);
  opts.setReduceFunction(testing_support::adder<int>());
  std::fill_n(values, count, context->rank + 1);
  reduce(opts);
  const uint64_t before = laneOf(context, kReduceSlotPrefix, 0).round();
  reduce(opts);
  if (context->rank == 1) {
    const int sum = context->size * (context->size + 1) / 2;
    EXPECT_EQ(std::vector<int>(count, sum), result);
  }
  return laneOf(context, kReduceSlotPrefix, 0).round() - before;
}

uint64_t reduceRoundsOf(const ContextPtr& context, size_t bytes) {
  std::vector<int> values(bytes / sizeof(int));
  return reduceRoundsOf(context, values.data(), bytes);
}

TEST(DirectProfile, SaysUpToWhichSizeTheRootReducesAlone) {
  onRanks(3, "", [](const ContextPtr& context) {
    EXPECT_EQ(kFlatOrSwapped, reduceRoundsOf(context, 40000));
    EXPECT_EQ(
        kFlatOrSwapped,
        reduceRoundsOf(context,
                       laneOf(context, kReduceSlotPrefix, 0).slotBytes() & ~3));
  });
  onRanks(3, R"({"rooted_bytes": 7999})", [](const ContextPtr& context) {
    EXPECT_EQ(kStaged, reduceRoundsOf(context, 8000));
    EXPECT_EQ(kFlatOrSwapped, reduceRoundsOf(context, 7996));
  });
  onRanks(3, R"({"rooted_bytes": 40000, "chunk_bytes": 8192})",
          [](const ContextPtr& context) {
            EXPECT_EQ(5u, reduceRoundsOf(context, 40000));
          });
}

// Nothing is offered of what fits a slot: who has nothing to offer need not
// wait to see that.
TEST(DirectProfile, TheRootReadsSlotsWhereMemoryIsSharedToo) {
  const auto rounds = [](const ContextPtr& context, size_t bytes) {
    auto memory = transport::shm::allocate(bytes);
    return reduceRoundsOf(context, static_cast<int*>(memory.data()), bytes);
  };
  onRanks(3, R"({"rooted_bytes": 65536, "chunk_bytes": 40000})",
          [&](const ContextPtr& context) {
            EXPECT_EQ(kFlatOrSwapped, rounds(context, 39936));
          });
}

// Its links are those of shared memory.
TEST(DirectProfile, OfShmIsThatOfATcpDeviceWhoseRanksShareMemory) {
  onRanks(
      3, R"({"flat_bytes": 7999})",
      [](const ContextPtr& context) {
        EXPECT_EQ(kStaged, roundsOf(context, 8000));
      },
      [] { return transport::tcp::CreateDevice("127.0.0.1"); });
}

// Nothing that does not fit its slot is flat.
TEST(DirectProfile, SlotsLimitWhatIsFlat) {
  onRanks(3, R"({"flat_bytes": 1e15})", [](const ContextPtr& context) {
    const size_t slot = laneOf(context, kAllreduceSlotPrefix, 0).slotBytes();
    EXPECT_EQ(kFlatOrSwapped, roundsOf(context, slot));
    EXPECT_LT(kFlatOrSwapped, roundsOf(context, slot + 4));
  });
}

TEST(DirectProfile, SaysHowMuchOfASlotIsUsed) {
  onRanks(3, "", [](const ContextPtr& context) {
    EXPECT_EQ(kStaged, roundsOf(context, 80000));
  });
  onRanks(3, R"({"chunk_bytes": 8192})", [](const ContextPtr& context) {
    // Three slices of 2688 bytes: ten chunks.
    EXPECT_EQ(kStaged + 9, roundsOf(context, 80000));
  });
}

TEST(DirectProfile, SaysFromWhichSizeOnTwoRanksTakeAHalfEach) {
  onRanks(2, "", [](const ContextPtr& context) {
    const bool crowded = laneOf(context, kAllreduceSlotPrefix, 0).crowded();
    EXPECT_EQ(crowded ? kFlatOrSwapped : kHalved, roundsOf(context, 40000));
  });
  onRanks(2, R"({"halved_bytes": 40001})", [](const ContextPtr& context) {
    EXPECT_EQ(kFlatOrSwapped, roundsOf(context, 40000));
  });
}

TEST(DirectProfile, SaysFromWhichSizeOnSharedMemoryIsUsedInPlace) {
  const auto rounds = [](const ContextPtr& context, size_t bytes) {
    auto memory = transport::shm::allocate(bytes);
    return roundsIn(context, static_cast<int*>(memory.data()), bytes);
  };
  onRanks(2, "", [&](const ContextPtr& context) {
    EXPECT_EQ(kFlatOrSwapped, rounds(context, 16384));
  });
  onRanks(2, R"({"in_place_bytes": 8192})", [&](const ContextPtr& context) {
    EXPECT_EQ(kInPlace, rounds(context, 16384));
    EXPECT_EQ(kFlatOrSwapped, rounds(context, 8000));
  });
}

// Of an alltoall of so many bytes of each rank.
uint64_t alltoallRoundsOf(const ContextPtr& context, size_t bytes) {
  const size_t count = bytes / sizeof(int);
  std::vector<int> from(count, context->rank);
  std::vector<int> to(count);
  AlltoallOptions opts(context);
  opts.setInput(from.data(), count);
  opts.setOutput(to.data(), count);
  // After those that go through slots in any case.
  for (int call = 0; call < internal::Lane::ReadTrial::kTries; call++) {
    alltoall(opts);
  }
  const uint64_t before = laneOf(context, kAlltoallSlotPrefix, 0).round();
  alltoall(opts);
  for (size_t i = 0; i < count; i++) {
    EXPECT_EQ(i * static_cast<size_t>(context->size) / count,
              static_cast<size_t>(to[i]));
  }
  return laneOf(context, kAlltoallSlotPrefix, 0).round() - before;
}

TEST(DirectProfile, SaysFromWhichSizeOnTheKernelCopies) {
  const auto copies = [](const ContextPtr& context, size_t bytes) {
    const uint64_t rounds = alltoallRoundsOf(context, bytes);
    const bool permitted = laneOf(context, kAlltoallSlotPrefix, 0).reads();
    return rounds == kInPlace || !permitted;
  };
  onRanks(2, R"({"chunk_bytes": 8192})", [&](const ContextPtr& context) {
    EXPECT_LT(kInPlace, alltoallRoundsOf(context, 65536));
    EXPECT_TRUE(copies(context, 1 << 20));
  });
  onRanks(
      2, R"({"read_bytes": 8192, "chunk_bytes": 8192})",
      [&](const ContextPtr& context) { EXPECT_TRUE(copies(context, 65536)); });
}

using testing_support::VectorArena;
using testing_support::VectorMemory;

// Every collective once, of so many elements.
void checkEach(const ContextPtr& context, size_t count, unsigned* seed) {
  using testing_support::Triple;
  for (size_t which = 0; which < testing_support::kChecks; which++) {
    const testing_support::Call call{count, static_cast<int>(*seed),
                                     *seed % 2 == 1, 0, *seed};
    ASSERT_EQ("",
              testing_support::checkCollective<Triple>(which, context, call))
        << context->size << " ranks, " << count;
    ++*seed;
  }
}

// In memory of each kind, and of another on one rank.
void checkAll(const std::string& direct) {
  for (const int size : {2, 3}) {
    onRanks(size, direct, [](const ContextPtr& context) {
      unsigned seed = 0;
      const auto last = context->rank == context->size - 1
                            ? VectorMemory::kArena
                            : VectorMemory::kOrdinary;
      for (const auto memory :
           {VectorMemory::kOrdinary, VectorMemory::kArena, last}) {
        VectorArena::mine().use(memory);
        for (const size_t count : {1, 20, 40, 50, 700, 9001}) {
          checkEach(context, count, &seed);
        }
      }
      VectorArena::mine().use(VectorMemory::kOrdinary);
    });
  }
}

TEST(DirectProfile, TheLeastSizesGiveWhatTheOracleSays) {
  checkAll(R"({"flat_bytes": 0, "rooted_bytes": 0, "halved_bytes": 0,
               "in_place_bytes": 128, "read_bytes": 128,
               "chunk_bytes": 8192})");
}

TEST(DirectProfile, TheMostOfOneRoundGivesWhatTheOracleSays) {
  checkAll(R"({"flat_bytes": 1e15, "rooted_bytes": 1e15, "halved_bytes": 1e15,
               "in_place_bytes": 128, "chunk_bytes": 8192})");
}

// Each member of a file, or not.
std::string anyDirect(std::mt19937& random) {
  const std::vector<const char*> sizes{"0", "300", "5000", "20000", "1e15"};
  const std::vector<const char*> chunks{"8192", "20000", "70000"};
  std::string text;
  const auto maySay = [&](const char* name, const auto& values, size_t first) {
    const size_t which = first + random() % (values.size() - first + 1);
    if (which < values.size()) {
      text += MakeString(text.empty() ? "" : ", ", "\"", name,
                         "\": ", values[which]);
    }
  };
  for (const char* name : {"flat_bytes", "crowded_flat_bytes", "rooted_bytes",
                           "crowded_rooted_bytes", "halved_bytes"}) {
    maySay(name, sizes, 0);
  }
  maySay("in_place_bytes", sizes, 1);
  maySay("read_bytes", sizes, 1);
  maySay("chunk_bytes", chunks, 0);
  return "{" + text + "}";
}

TEST(DirectProfile, AllThatAFileMaySayGivesWhatTheOracleSays) {
  for (unsigned trial = 0; trial < 16; trial++) {
    std::mt19937 random(trial);
    const std::string direct = anyDirect(random);
    SCOPED_TRACE(direct);
    const int size = 2 + static_cast<int>(trial % 3);
    onRanks(size, direct, [&](const ContextPtr& context) {
      unsigned seed = trial;
      for (const size_t count : {30, 500, 2500, 7000}) {
        // Some ranks' in memory of the shared allocator.
        const bool shares = (random() >> context->rank) % 2 == 1;
        VectorArena::mine().use(shares ? VectorMemory::kArena
                                       : VectorMemory::kOrdinary);
        checkEach(context, count, &seed);
      }
      VectorArena::mine().use(VectorMemory::kOrdinary);
    });
  }
}

TEST(DirectProfile, SaysWhichVectorsTakeTheLinks) {
  onRanks(3, R"({"most_bytes": {"allreduce": 5000}})",
          [](const ContextPtr& context) {
            EXPECT_EQ(0u, roundsOf(context, 5004));
            EXPECT_EQ(kFlatOrSwapped, roundsOf(context, 5000));
          });
}

TEST(DirectProfile, IsOneForAllRanks) {
  const ScratchDirectory directory;
  spawnSeats(Mode::kProcesses, 2, [&](Seat& seat) {
    useFile(directory, std::to_string(seat.rank),
            text(2, R"({"halved_bytes": )" + std::to_string(seat.rank) + "}"));
    try {
      connect(seat, &onShm);
      ADD_FAILURE() << "rank " << seat.rank << " is connected";
    } catch (const IoException& e) {
      EXPECT_NE(std::string::npos,
                std::string(e.what()).find("GLOO_TUNING_FILE is"))
          << e.what();
    }
  });
}

TEST(DirectProfile, WhatMakesNoSenseIsAnErrorOnAllRanks) {
  onRanks(2, R"({"chunk_bytes": 100})", [](const ContextPtr& context) {
    try {
      roundsOf(context, 400);
      ADD_FAILURE() << "rank " << context->rank << " accepts it";
    } catch (const InvalidOperationException& e) {
      EXPECT_NE(std::string::npos,
                std::string(e.what()).find("networks[0].direct.chunk_bytes: "
                                           "expected a number from 8192"))
          << e.what();
    }
  });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
