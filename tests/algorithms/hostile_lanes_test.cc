// What a broken or hostile peer may write into the memory of lanes: anything,
// at any time. The others may get wrong results or an error, in time; nothing
// that is not theirs to touch is touched (under the address sanitizer, that is
// seen).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "gloo/common/error.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/file_store.h"
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
constexpr size_t kLentBytes = 4 << 20;

struct Collective {
  std::string (*check)(const ContextPtr&, const Call&);
  uint8_t prefix;
};
constexpr Collective kCollectives[] = {
    {checkAllreduce<int>, kAllreduceSlotPrefix},
    {checkReduce<int>, kReduceSlotPrefix},
    {checkBroadcast<int>, kBroadcastSlotPrefix},
    {checkAllgather<int>, kAllgatherSlotPrefix},
    {checkReduceScatter<int>, kReduceScatterSlotPrefix},
    {checkAlltoall<int>, kAlltoallSlotPrefix}};

// All words of the memory that holds `inside`.
std::pair<std::atomic<uint64_t>*, size_t> wordsAround(const void* inside) {
  const auto at = reinterpret_cast<uintptr_t>(inside);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    size_t length = 0;
    const uintptr_t begin = std::stoull(line, &length, 16);
    const uintptr_t end = std::stoull(line.substr(length + 1), nullptr, 16);
    if (begin <= at && at < end) {
      return {reinterpret_cast<std::atomic<uint64_t>*>(begin),
              (end - begin) / sizeof(uint64_t)};
    }
  }
  return {};
}

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
  // not so.
  void follow() {
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
    }
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
      default:
        if (words[0] > UINT32_MAX) {  // what the model offers is its own
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
  constexpr size_t kCounts[] = {1, 20, 300, 20000, 200000};
  Call call;
  call.count = kCounts[random() % std::size(kCounts)];
  call.root = static_cast<int>(random() % kRanks);
  call.inPlace = random() % 2 == 0;
  VectorArena::mine().use(random() % 4 != 0 ? VectorMemory::kShared
                                            : VectorMemory::kOrdinary);
  (void)collective.check(context, call);
}

class HostileLanesTest : public ::testing::TestWithParam<int> {};

TEST_P(HostileLanesTest, NothingElseIsTouched) {
  const auto seed = static_cast<unsigned>(GetParam());
  const Collective& collective = kCollectives[seed % std::size(kCollectives)];
  const bool anywhere = seed % 2 == 1;
  const ScratchDirectory directory;
  ProcessGroup ranks(kRanks, [&](Child& child) {
    auto device = transport::shm::CreateDevice();
    const auto context =
        std::make_shared<rendezvous::Context>(child.rank, kRanks);
    context->setTimeout(contextTimeout());
    context->connectFullMesh(
        std::make_shared<rendezvous::FileStore>(directory.path()), device);
    const auto memory = transport::shm::allocate(kLentBytes);
    AllreduceOptions opts(context);
    opts.setOutput(static_cast<int*>(memory.data()), kLentBytes / sizeof(int));
    opts.setReduceFunction(adder<int>());
    allreduce(opts);  // all have it mapped
    internal::Lane& lane = laneOf(context, collective.prefix, 0);
    bool isNew = false;
    const auto mine = lane.placeOf(memory.data(), kLentBytes, &isNew);
    EXPECT_FALSE(isNew);
    child.say("ready");
    child.hear();
    context->setTimeout(kTimeout);
    const auto until = now() + std::chrono::milliseconds(100);
    if (child.rank == kHostile) {
      Deceiver deceiver(lane, mine.memory, seed);
      for (int i = 0; now() < until + kTimeout && !lane.failed(); i++) {
        deceiver.follow();
        if (anywhere && i % 4096 == 4095) {
          deceiver.scribble();
        }
      }
      child.hear();  // its end would end what the others do
      return;
    }
    Random random(seed);
    auto before = now();
    try {
      while (before < until) {
        call(collective, context, random);
        before = now();
      }
    } catch (const IoException&) {
      EXPECT_LT(now() - before,
                (kTimeout + std::chrono::seconds(1)) * slowness());
    }
    child.say("done");
  });
  ranks.expectAll("ready");
  ranks.tellAll("go");
  for (const int rank : {0, 1}) {
    EXPECT_EQ(ranks.hear(rank, std::chrono::seconds(20) * patience()), "done");
  }
  ranks.tell(kHostile, "done");
  ranks.joinAll();
}

INSTANTIATE_TEST_SUITE_P(, HostileLanesTest,
                         ::testing::Range(0, int{std::size(kCollectives)}));

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
