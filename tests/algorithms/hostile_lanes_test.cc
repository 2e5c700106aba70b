// What a broken or hostile peer may write into the memory of lanes: anything,
// at any time. The others may get wrong results or an error, in time; nothing
// that is not theirs to touch is touched (under the address sanitizer, that is
// seen).
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gloo/allreduce.h"
#include "gloo/common/error.h"
#include "gloo/common/string.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/rendezvous/prefix_store.h"
#include "gloo/transport/shm/allocate.h"
#include "gloo/transport/shm/device.h"
#include "tests/algorithms/lanes.h"
#include "tests/support/collectives.h"
#include "tests/support/process_group.h"
#include "tests/support/spawn.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace testing_support;  // NOLINT
using internal::LaneLine;
using ContextPtr = std::shared_ptr<Context>;
using Random = std::mt19937_64;

constexpr int kRanks = 3;
constexpr int kHostile = 2;
constexpr std::chrono::milliseconds kTimeout{100};
constexpr std::chrono::milliseconds kHarm{400};
constexpr size_t kLentBytes = 4 << 20;

struct Collective {
  std::string (*check)(const ContextPtr&, const Call&);
  uint8_t prefix;
  const char* name;
};
constexpr Collective kCollectives[] = {
    {checkAllreduce<int>, kAllreduceSlotPrefix, "Allreduce"},
    {checkReduce<int>, kReduceSlotPrefix, "Reduce"},
    {checkBroadcast<int>, kBroadcastSlotPrefix, "Broadcast"},
    {checkAllgather<int>, kAllgatherSlotPrefix, "Allgather"},
    {checkReduceScatter<int>, kReduceScatterSlotPrefix, "ReduceScatter"},
    {checkAlltoall<int>, kAlltoallSlotPrefix, "Alltoall"}};

// Of no use, or nearly of use: small, or what stands somewhere else.
uint64_t someWord(Random& random, uint64_t other) {
  switch (random() % 4) {
    case 0:
      return random() % 9;
    case 1:
      return other;
    case 2:
      return ~(random() % 9);
    default:
      return random();
  }
}

// Of memory that the others have mapped: within it, about its end, and not.
internal::Place somePlace(Random& random, uint64_t memory) {
  constexpr uint64_t kOffsets[] = {0, 64, kLentBytes - 4096, uint64_t{1} << 44,
                                   ~uint64_t{4095}};
  return {memory, kOffsets[random() % std::size(kOffsets)]};
}

class Deceiver {
 public:
  // `memory`: what it has lent to the others.
  Deceiver(internal::Lane& lane, uint64_t memory, unsigned seed)
      : lane_(lane), memory_(memory), random_(seed) {}

  // Comes to each round as another rank does, and says of its memory what is
  // not so. False: none came.
  bool follow() {
    bool came = false;
    for (const uint64_t half : {0, 1}) {
      const LaneLine& model = lane_.line(0, half);
      LaneLine& mine = lane_.line(kHostile, half);
      const uint64_t round = model.round.load(std::memory_order_acquire);
      if (round <= mine.round.load(std::memory_order_relaxed)) {
        if (random_() % 16384 == 0) {  // between two looks at it
          lie(mine, model);
        }
        continue;
      }
      mine.check = model.check;
      mine.bytes = model.bytes;
      lie(mine, model);
      lane_.publish(round);
      came = true;
    }
    return came;
  }

  // Claims, bells, lines and slots: what stands at the beginning is little.
  void scribble() {
    const auto [words, count] = wordsAround(&lane_.line(0, 0));
    ASSERT_GT(count, 0u);
    for (const size_t among : {count, std::min<size_t>(count, 2048)}) {
      words[random_() % among] = someWord(random_, words[random_() % among]);
    }
  }

 private:
  void lie(LaneLine& mine, const LaneLine& model) {
    uint64_t words[LaneLine::kPayloadBytes / sizeof(uint64_t)];
    std::memcpy(words, model.payload, sizeof(words));
    const auto offer = [&](const internal::Place& input,
                           const internal::Place& output) {
      const internal::Place places[] = {input, output};
      std::memcpy(words, places, sizeof(places));
    };
    switch (random_() % 16) {
      case 0:
        for (uint64_t& word : words) {
          word = someWord(random_, word);
        }
        break;
      case 1:
        words[4] = random_() % 2;  // as if it were new
        [[fallthrough]];
      case 2:
        offer(somePlace(random_, memory_), somePlace(random_, memory_));
        break;
      case 3:
        offer(somePlace(random_, internal::Place::kOrdinary), {});
        break;
      default:
        // What the model offers is its own. (What begins with 0 or 1 is its
        // vote, before what lay there: to be believed, one votes like it.)
        if (words[0] > UINT32_MAX && (words[0] & 0xff) > 1) {
          offer({memory_, 0}, {memory_, 0});
        }
        break;
    }
    std::memcpy(mine.payload, words, sizeof(words));
  }

  internal::Lane& lane_;
  const uint64_t memory_;
  Random random_;
};

// The next one; what comes out may be wrong.
void call(const Collective& collective, const ContextPtr& context,
          Random& random) {
  constexpr size_t kCounts[] = {1, 20, 300, 20000, 60000};
  // A slot of its inputs is read whatever they offer.
  constexpr size_t kReduceCounts[] = {1, 300, 140000, 140000, 200000};
  // The last one is read by the kernel.
  constexpr size_t kAlltoallCounts[] = {1, 20, 300, 20000, 100000};
  const std::span<const size_t> counts =
      collective.prefix == kReduceSlotPrefix     ? std::span(kReduceCounts)
      : collective.prefix == kAlltoallSlotPrefix ? std::span(kAlltoallCounts)
                                                 : std::span(kCounts);
  // What all have mapped already, mostly: the others then believe an offer, or
  // give up; where something is new, they vote.
  constexpr VectorMemory kMemory[] = {
      VectorMemory::kOrdinary, VectorMemory::kShared, VectorMemory::kArena,
      VectorMemory::kArena, VectorMemory::kArena};
  Call call;
  call.count = counts[random() % counts.size()];
  call.root = static_cast<int>(random() % kRanks);
  call.inPlace = random() % 2 == 0;
  VectorArena::mine().use(kMemory[random() % std::size(kMemory)]);
  (void)collective.check(context, call);
}

// Where the memory of others comes to lie here: within pages that nobody may
// touch. (Of equal mappings each takes a hole.)
class GuardedHoles {
 public:
  GuardedHoles() {
    constexpr size_t kAll = kHoles * (kBytes + kPage) + kPage;
    char* at = static_cast<char*>(
        ::mmap(nullptr, kAll, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    GLOO_ENFORCE(at != MAP_FAILED, "no address space");
    guards_ = at;
    // Linux takes the highest place that is wide enough: so no wider one stays
    // above the holes.
    for (;;) {
      void* const above = ::mmap(nullptr, kBytes, PROT_NONE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (above == MAP_FAILED) {
        break;
      }
      fillers_.push_back(above);
      if (above < static_cast<void*>(guards_)) {
        break;
      }
    }
    for (at += kPage; at < guards_ + kAll; at += kBytes + kPage) {
      ::munmap(at, kBytes);
    }
  }
  // What is mapped in the holes is its owner's to unmap.
  ~GuardedHoles() {
    for (size_t i = 0; i <= kHoles; i++) {
      ::munmap(guards_ + i * (kBytes + kPage), kPage);
    }
    for (void* const filler : fillers_) {
      ::munmap(filler, kBytes);
    }
  }
  GuardedHoles(const GuardedHoles&) = delete;
  GuardedHoles& operator=(const GuardedHoles&) = delete;

  // Of the holes.
  size_t used() const {
    size_t used = 0;
    for (size_t i = 0; i < kHoles; i++) {
      unsigned char there = 0;
      used +=
          ::mincore(guards_ + i * (kBytes + kPage) + kPage, kPage, &there) == 0;
    }
    return used;
  }

 private:
  static constexpr size_t kPage = 4096;
  static constexpr size_t kHoles = 8;  // small mappings take some
  static constexpr size_t kBytes = kLentBytes + kPage;  // and what it is

  char* guards_;
  std::vector<void*> fillers_;
};

struct Case {
  size_t collective;
  bool anywhere;  // or only what a rank may write
};

class HostileLanesTest : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr const char* kRefused =
      "works in shared memory that this rank does not have mapped";

  static ContextPtr connect(Child& child, const std::string& path, int turn,
                            std::shared_ptr<transport::Device>& device) {
    auto context = std::make_shared<rendezvous::Context>(child.rank, kRanks);
    context->setTimeout(contextTimeout());
    rendezvous::FileStore files(path);
    rendezvous::PrefixStore store(std::to_string(turn), files);
    context->connectFullMesh(store, device);
    return context;
  }

  // Until this rank's error, for a while.
  static std::string endOf(const Collective& collective,
                           const ContextPtr& context, unsigned seed) {
    Random random(seed);
    const auto until = now() + kHarm;
    auto before = now();
    try {
      while (before < until) {
        call(collective, context, random);
        before = now();
      }
    } catch (const IoException& e) {
      EXPECT_LT(now() - before,
                (kTimeout + std::chrono::seconds(1)) * slowness());
      return e.what();
    }
    return "";
  }

  static void deceive(internal::Lane& lane, uint64_t memory, unsigned seed) {
    Deceiver deceiver(lane, memory, seed);
    const auto until = now() + kHarm + kTimeout;
    bool followed = false;
    for (int i = 0; now() < until && !lane.failed(); i++) {
      followed = deceiver.follow() || followed;
      // Where the others are not at work meanwhile, once is enough.
      if (GetParam().anywhere && followed && i % 4096 == 4095) {
        deceiver.scribble();
        followed = false;
      }
    }
  }

  // One context. Says "refused" of an offer that was seen to be none.
  static void runTurn(Child& child, const ContextPtr& context, unsigned seed) {
    const Collective& collective = kCollectives[GetParam().collective];
    const GuardedHoles holes;
    const auto memory = transport::shm::allocate(kLentBytes);
    AllreduceOptions opts(context);
    opts.setOutput(static_cast<int*>(memory.data()), kLentBytes / sizeof(int));
    opts.setReduceFunction(adder<int>());
    allreduce(opts);  // all have it mapped
    EXPECT_GE(holes.used(), 2u);
    internal::Lane& lane = laneOf(context, collective.prefix, 0);
    // What the kernel may read is read at once.
    for (auto& trial = lane.readTrial(1 << 20); !trial.goesSecond();) {
      trial.next();
    }
    bool isNew = false;
    const auto mine = lane.placeOf(memory.data(), kLentBytes, &isNew);
    EXPECT_FALSE(isNew);
    child.say("ready");
    child.hear();
    context->setTimeout(kTimeout);
    if (child.rank == kHostile) {
      deceive(lane, mine.memory, seed);
      child.hear();  // its end would end what the others do
      return;
    }
    const std::string end = endOf(collective, context, seed);
    child.say(end.find(kRefused) != std::string::npos ? "refused" : "done");
  }
};

// Until forged offers were refused a few times.
TEST_P(HostileLanesTest, NothingElseIsTouched) {
  constexpr int kWanted = 2;
  // Where others work too, few offers are in time.
  const auto until = now() + std::chrono::seconds(100);
  const ScratchDirectory directory;
  ProcessGroup ranks(kRanks, [&](Child& child) {
    auto device = transport::shm::CreateDevice();
    for (int turn = 0; turn == 0 || child.hear() == "again"; turn++) {
      const auto context = connect(child, directory.path(), turn, device);
      runTurn(child, context, static_cast<unsigned>(turn));
    }
  });
  int refused = 0;
  for (int turn = 0; refused < kWanted && now() < until; turn++) {
    if (turn > 0) {
      ranks.tellAll("again");
    }
    ranks.expectAll("ready");
    ranks.tellAll("go");
    for (const int rank : {0, 1}) {
      const auto said = ranks.hear(rank, std::chrono::seconds(20));
      refused += said == "refused" ? 1 : 0;
      ASSERT_TRUE(said == "refused" || said == "done") << said;
    }
    ranks.tell(kHostile, "done");
  }
  EXPECT_GE(refused, kWanted);
  ranks.tellAll("over");
  ranks.joinAll();
}

std::vector<Case> allCases() {
  std::vector<Case> cases;
  for (size_t i = 0; i < std::size(kCollectives); i++) {
    cases.push_back({i, false});
    cases.push_back({i, true});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(, HostileLanesTest, ::testing::ValuesIn(allCases()),
                         [](const auto& info) {
                           return MakeString(
                               kCollectives[info.param.collective].name,
                               info.param.anywhere ? "_anywhere" : "_offers");
                         });

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
