// Ranks that would cut a vector in different ways are told so.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/plan.h"
#include "gloo/allreduce.h"
#include "gloo/reduce.h"
#include "gloo/reduce_scatter.h"
#include "tests/algorithms/worlds.h"

GLOO_NAMESPACE_BEGIN
namespace {

using testing_support::ContextPtr;
using testing_support::ContextWorld;
using testing_support::FakeContext;
using testing_support::FakeWorld;

constexpr int kRanks = 4;
constexpr size_t kCount = 16384;  // of int: 64 KiB
void (*const kSum)(void*, const void*, const void*, size_t) = &sum<int>;

using Texts = std::vector<std::string>;  // of what the ranks' calls threw

template <typename Body>
Texts outcomes(const std::vector<int>& bases, const Body& body) {
  FakeWorld world(kRanks);
  Texts texts(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; rank++) {
    threads.emplace_back([&, rank] {
      const auto at = static_cast<size_t>(rank);
      const ContextPtr context =
          std::make_shared<FakeContext>(world.channel(rank), bases[at]);
      try {
        body(context);
      } catch (const MismatchException& e) {
        texts[at] = e.what();
      } catch (const std::exception& e) {
        texts[at] = std::string("no mismatch: ") + e.what();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return texts;
}

void expectAll(const Texts& texts, const std::string& part) {
  for (const std::string& text : texts) {
    EXPECT_NE(std::string::npos, text.find(part)) << "'" << text << "'";
    EXPECT_EQ(std::string::npos, text.find("no mismatch")) << text;
  }
}

void expectNone(const Texts& texts) { EXPECT_EQ(Texts(kRanks), texts); }

// Rank 2's segments are shorter.
template <typename Options>
void setSegment(Options& opts, const ContextPtr& context) {
  opts.setReduceFunction(kSum);
  opts.setMaxSegmentSize(context->rank == 2 ? 4096 : 8192);
}

TEST(Agreement, IsAboutTheSegmentSize) {
  const std::vector<int> bases(kRanks, 2);
  const std::string says = "segment size";
  expectAll(outcomes(bases,
                     [](const ContextPtr& context) {
                       std::vector<int> data(kCount);
                       AllreduceOptions opts(context);
                       setSegment(opts, context);
                       opts.setOutput(data.data(), kCount);
                       allreduce(opts);
                     }),
            says);
  expectAll(outcomes(bases,
                     [](const ContextPtr& context) {
                       std::vector<int> data(kCount);
                       ReduceScatterOptions opts(context);
                       setSegment(opts, context);
                       opts.setOutput(data.data(), kCount);
                       reduce_scatter(opts);
                     }),
            says);
}

TEST(Agreement, IsAboutTheSegmentSizeOfAReduction) {
  const Texts texts =
      outcomes(std::vector<int>(kRanks, 2), [](const ContextPtr& context) {
        std::vector<int> data(kCount);
        ReduceOptions opts(context);
        setSegment(opts, context);
        opts.setOutput(data.data(), kCount);
        opts.setRoot(0);
        reduce(opts);
      });
  // The others of a reduce wait for nobody.
  EXPECT_NE(std::string::npos, texts[0].find("segment size")) << texts[0];
}

// Nothing that short is cut.
TEST(Agreement, OfShortVectorsIsNotAboutSegments) {
  expectNone(
      outcomes(std::vector<int>(kRanks, 2), [](const ContextPtr& context) {
        std::vector<int> data(1000);
        AllreduceOptions opts(context);
        setSegment(opts, context);
        opts.setMaxSegmentSize(context->rank == 2 ? 4000 : 8192);
        opts.setOutput(data.data(), data.size());
        allreduce(opts);
      }));
}

void byBcube(const ContextPtr& context) {
  std::vector<int> data(kCount);
  AllreduceOptions opts(context);
  opts.setReduceFunction(kSum);
  opts.setOutput(data.data(), kCount);
  opts.setAlgorithm(AllreduceOptions::BCUBE);
  allreduce(opts);
}

TEST(Agreement, OfBcubeIsAboutTheBase) {
  expectAll(outcomes({2, 2, 4, 2}, byBcube), "base");
  expectNone(outcomes({4, 4, 4, 4}, byBcube));
  // With as many ranks as these all of them are one cube's side.
  expectNone(outcomes({4, 5, 4, 16}, byBcube));
}

TEST(Agreement, OfTheOthersIsNotAboutTheBase) {
  expectNone(outcomes({2, 2, 4, 2}, [](const ContextPtr& context) {
    std::vector<int> data(kCount);
    AllreduceOptions opts(context);
    opts.setReduceFunction(kSum);
    opts.setOutput(data.data(), kCount);
    opts.setAlgorithm(AllreduceOptions::RING);
    allreduce(opts);
  }));
}

// Whoever agrees sends what the other expects.
TEST(Agreement, IsAboutTheSegmentsThatAreSent) {
  using namespace algorithms;
  const auto cuts = [](const Plan& plan) {
    std::vector<size_t> bytes;
    for (const Action& action : plan.program().actions) {
      bytes.push_back(action.bytes);
    }
    return bytes;
  };
  int agreeing = 0;
  for (const char* transport : {"ibverbs", "shm", "tcp"}) {
    for (const size_t bytes : {3000, 70000, 700000, 1300000, 5000000}) {
      internal::Profile profile;
      profile.hostOfRank = {0, 1, 2};
      const Selection selection(profile, 3, transport);
      Request request;
      request.collective = Collective::kAllreduce;
      request.counts.count = bytes;
      const Plan usual(request, 0, 3, selection, 0);
      for (const size_t limit :
           {1000, 4096, 50000, 600000, 800000, 1500000, 6000000}) {
        request.maxSegmentBytes = limit;
        const Plan other(request, 0, 3, selection, 0);
        if (usual.check() == other.check()) {
          EXPECT_EQ(cuts(usual), cuts(other))
              << transport << ", " << bytes << " bytes, limit " << limit;
          agreeing++;
        }
      }
    }
  }
  EXPECT_GT(agreeing, 20);
}

}  // namespace
GLOO_NAMESPACE_END
