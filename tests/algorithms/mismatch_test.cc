// Ranks that disagree about a collective, through the API, over messages and in
// mapped memory: every pair of operations, and every field of the check words.
// All ranks must have the error within a second of the first contradiction, and
// it must name the field and the ranks. Whether anything contradicts is
// computed from the schedules; docs/failures.md lists when nothing does.
#include <gtest/gtest.h>

#include <thread>

#include "gloo/common/error.h"
#include "tests/algorithms/mismatch_oracle.h"
#include "tests/algorithms/rank_call.h"
#include "tests/support/process_group.h"
#include "tests/support/transports.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using algorithms::AlgorithmInfo;
using algorithms::nameOf;
using internal::Reduction;
using std::chrono::milliseconds;
using ContextPtr = std::shared_ptr<Context>;

constexpr int kRanks = 3;
constexpr milliseconds kLongTimeout{20000};
constexpr milliseconds kShortTimeout{100};

// Rank `odd` makes the call `other`, all others make `call`.
struct Case {
  RankCall call;
  RankCall other;
  int odd = 0;
  std::string named;  // by the error

  std::vector<RankCall> calls() const {
    std::vector<RankCall> all(kRanks, call);
    all[static_cast<size_t>(odd)] = other;
    return all;
  }
  std::string str() const {
    return MakeString(nameOf(call.collective), ", but ",
                      nameOf(other.collective), " on rank ", odd, ": ", named,
                      ", root ", call.call.root, " and ", other.call.root);
  }
};

// In mapped memory: `direct` says that there is some.
bool isDirect(const RankCall& call, bool direct) {
  return MismatchOracle({kRanks, call}, direct).isDirect();
}

// ---- The matrix.

using Cases = std::vector<Case>;

void addEachRank(Cases& cases, const RankCall& call, const RankCall& other,
                 const std::string& named) {
  for (int odd = 0; odd < kRanks; odd++) {
    cases.push_back({call, other, odd, named});
  }
}

Cases operations(Collective collective, bool) {
  Cases cases;
  for (const Collective other : kCollectives) {
    if (other != collective) {
      addEachRank(cases, callOf(collective), callOf(other), "operation: ");
    }
  }
  return cases;
}

// Where a rank's counts are its own business, there is nothing to compare.
Cases counts(Collective collective, bool) {
  Cases cases;
  for (const size_t count : {size_t{6}, size_t{0}, size_t{1} << 20}) {
    RankCall other = callOf(collective);
    other.call.count = count;
    if (sharesCounts(collective) && collective != Collective::kBarrier) {
      addEachRank(cases, callOf(collective), other, "number of elements: ");
    }
  }
  return cases;
}

Cases types(Collective collective, bool) {
  Cases cases;
  const RankCall call = callOf(collective);
  RankCall other = call;
  if (collective != Collective::kBarrier) {
    other.type = RankCall::kInt32;
    addEachRank(cases, call, other, "element type: ");
    other.type = RankCall::kInt64;
    addEachRank(cases, call, other, "element type: ");
    other.type = RankCall::kForeign8;
    addEachRank(cases, call, other, "element size");
  }
  return cases;
}

Cases reductions(Collective collective, bool) {
  Cases cases;
  for (const Reduction reduction : {Reduction::kProduct, Reduction::kMin,
                                    Reduction::kMax, Reduction::kAverage}) {
    RankCall other = callOf(collective);
    other.call.reduction = reduction;
    if (reduces(collective)) {
      addEachRank(cases, callOf(collective), other, "reduction: ");
    }
  }
  return cases;
}

// An average is divided by their number.
Cases vectors(Collective collective, bool) {
  Cases cases;
  RankCall call = callOf(collective);
  call.call.reduction = Reduction::kAverage;
  RankCall other = call;
  other.call.vectors = 2;
  if (collective == Collective::kAllreduce) {
    addEachRank(cases, call, other, "of vectors to average: ");
  }
  return cases;
}

Cases algorithmNames(Collective collective, bool direct) {
  std::vector<const char*> names;
  for (const AlgorithmInfo& info : algorithms::algorithmsOf(collective)) {
    // A barrier's options have no algorithm.
    if (collective != Collective::kBarrier && info.offers({0, kRanks, 0, 2})) {
      names.push_back(info.name.data());
    }
  }
  // What runs in mapped memory if nothing is asked for.
  if (isDirect(callOf(collective), direct)) {
    names.push_back(nullptr);
  }
  Cases cases;
  for (const char* one : names) {
    for (const char* two : names) {
      RankCall call = callOf(collective);
      RankCall other = call;
      call.call.algorithm = one;
      other.call.algorithm = two;
      if (one != two) {
        addEachRank(cases, call, other, "algorithm: ");
      }
    }
  }
  return cases;
}

Cases roots(Collective collective, bool) {
  Cases cases;
  for (int root = 0; root < kRanks && hasRoot(collective); root++) {
    for (int step = 1; step < kRanks; step++) {
      RankCall call = callOf(collective);
      RankCall other = call;
      call.call.root = root;
      other.call.root = (root + step) % kRanks;
      addEachRank(cases, call, other, "root: ");
    }
  }
  return cases;
}

Cases withoutElements(Collective collective, bool) {
  Cases cases;
  for (const Collective other : kCollectives) {
    if (collective != Collective::kBarrier && other != Collective::kBarrier) {
      cases.push_back({emptyOf(callOf(collective)), emptyOf(callOf(other)), 1,
                       "operation: "});
    }
  }
  return cases;
}

// One rank has missed a call with this tag, or makes one more.
Cases sequences(Collective collective, bool) {
  Cases cases;
  const RankCall call = callOf(collective);
  RankCall other = call;
  other.before = 1;
  addEachRank(cases, call, other, " on rank ");
  addEachRank(cases, other, call, " on rank ");
  return cases;
}

using Field = Cases (*)(Collective, bool);
constexpr Field kFields[] = {operations, counts,          types,
                             reductions, vectors,         algorithmNames,
                             roots,      withoutElements, sequences};

// ---- Running.

struct Outcome {
  std::string type = "none";
  std::string text;
  std::chrono::nanoseconds took{};
};

template <typename Function>
bool record(Outcome& outcome, const Function& function) {
  try {
    function();
    return false;
  } catch (const MismatchException& e) {
    outcome = {"mismatch", e.what(), {}};
  } catch (const TimeoutException& e) {
    outcome = {"timeout", e.what(), {}};
  } catch (const std::exception& e) {
    outcome = {"other", e.what(), {}};
  }
  return true;
}

// A call that returns has the right result, whoever disagrees.
void performRight(const ContextPtr& context, const RankCall& call) {
  const std::string wrong = perform(context, call);
  if (!wrong.empty()) {
    throw std::logic_error("wrong data: " + wrong);
  }
}

void performAll(const ContextPtr& context, const RankCall& call) {
  for (int i = 0; i < call.before; i++) {
    performRight(context, emptyOf(call));
  }
  performRight(context, call);
}

// The call's exception; else that of the context, if it fails soon.
Outcome outcomeOf(const ContextPtr& context, const RankCall& call,
                  Expected expected) {
  Outcome outcome;
  auto start = now();
  bool failed = record(outcome, [&] {
    barrier(BarrierOptions(context));  // nobody still connects
    context->setTimeout(expected == Expected::kTimeout ? kShortTimeout
                                                       : kLongTimeout);
    start = now();
    performAll(context, call);
    if (expected == Expected::kNextMismatch || expected == Expected::kSuccess) {
      performRight(context, callOf(Collective::kAllreduce));
    }
  });
  const auto limit = now() + std::chrono::seconds(2) * slowness();
  while (!failed && expected != Expected::kSuccess && now() < limit) {
    failed = record(outcome, [&] { context->createUnboundBuffer(nullptr, 0); });
    std::this_thread::yield();
  }
  outcome.took = now() - start;
  return outcome;
}

void expectOutcome(const Case& one, Expected expected, const Outcome& outcome) {
  auto limit = std::chrono::nanoseconds(std::chrono::seconds(1) * slowness());
  switch (expected) {
    case Expected::kSuccess:
      EXPECT_EQ("none", outcome.type) << outcome.text;
      return;
    case Expected::kTimeout:
      EXPECT_EQ("timeout", outcome.type) << outcome.text;
      limit += kShortTimeout;
      break;
    case Expected::kMismatch:
      EXPECT_NE(std::string::npos, outcome.text.find(one.named))
          << outcome.text;
      [[fallthrough]];
    case Expected::kNextMismatch:
      EXPECT_EQ("mismatch", outcome.type) << outcome.text;
      EXPECT_NE(std::string::npos,
                outcome.text.find(MakeString(" on rank ", one.odd)))
          << outcome.text;
      break;
  }
  EXPECT_LT(outcome.took, limit);
}

// Where docs/failures.md says that an error may come late, or that there is
// none.
bool mayBeLate(const Case& one, bool direct) {
  if (!direct) {
    return one.call.call.count == 0 && one.other.call.count == 0;
  }
  const auto isOneSided = [](const RankCall& call) {
    return hasRoot(call.collective) || call.call.count == 0;
  };
  return isOneSided(one.call) || isOneSided(one.other) ||
         isDirect(one.call, direct) != isDirect(one.other, direct);
}

class MismatchTest
    : public ::testing::TestWithParam<std::tuple<std::string, Collective>> {
 protected:
  void SetUp() override {
    for (const TestTransport& transport : transports()) {
      if (transport.name == std::get<0>(GetParam())) {
        transport_ = &transport;
      }
    }
    ASSERT_NE(nullptr, transport_);
    SKIP_UNLESS_AVAILABLE(*transport_);
  }

  bool hasMappedMemory() const { return transport_->name != "tcp"; }

  void expectAll(Field field) {
    int at[4] = {};
    const bool direct = hasMappedMemory();
    for (const Case& one : field(std::get<1>(GetParam()), direct)) {
      const Expected expected = run(one, Mode::kThreads);
      EXPECT_TRUE(expected == Expected::kMismatch || mayBeLate(one, direct));
      at[static_cast<size_t>(expected)]++;
    }
    RecordProperty("at_once", at[size_t(Expected::kMismatch)]);
    RecordProperty("next_call", at[size_t(Expected::kNextMismatch)]);
    RecordProperty("at_the_deadline", at[size_t(Expected::kTimeout)]);
    RecordProperty("no_error", at[size_t(Expected::kSuccess)]);
  }

  Expected run(const Case& one, Mode mode) {
    SCOPED_TRACE(one.str());
    const auto calls = one.calls();
    const Expected expected =
        MismatchOracle(calls, hasMappedMemory()).expected();
    spawnContexts(mode, transport_->make, kRanks, [&](const auto& context) {
      SCOPED_TRACE(MakeString(one.str(), "; rank ", context->rank));
      const auto rank = static_cast<size_t>(context->rank);
      expectOutcome(one, expected, outcomeOf(context, calls[rank], expected));
    });
    return expected;
  }

  const TestTransport* transport_ = nullptr;
};

TEST_P(MismatchTest, AnyOtherOperation) { expectAll(operations); }
TEST_P(MismatchTest, CountOrCounts) { expectAll(counts); }
TEST_P(MismatchTest, ElementTypeOrSize) { expectAll(types); }
TEST_P(MismatchTest, Reduction) { expectAll(reductions); }
TEST_P(MismatchTest, VectorsOfAnAverage) { expectAll(vectors); }
TEST_P(MismatchTest, Algorithm) { expectAll(algorithmNames); }
TEST_P(MismatchTest, Root) { expectAll(roots); }
// Nothing travels, and nothing is wrong; in mapped memory, lines are compared.
TEST_P(MismatchTest, NoElements) { expectAll(withoutElements); }
TEST_P(MismatchTest, Sequence) { expectAll(sequences); }

// The first case of every field that is noticed at once.
TEST_P(MismatchTest, BetweenProcesses) {
  for (const Field field : kFields) {
    for (const Case& one : field(std::get<1>(GetParam()), hasMappedMemory())) {
      if (MismatchOracle(one.calls(), hasMappedMemory()).expected() ==
          Expected::kMismatch) {
        run(one, Mode::kProcesses);
        break;
      }
    }
  }
}

// A function that the library does not know may be the same.
TEST_P(MismatchTest, NotOfWhatIsUnknown) {
  RankCall call = callOf(std::get<1>(GetParam()));
  RankCall other = call;
  other.call.reduction = Reduction::kCustom;
  const Case one{call, other, 1, ""};
  EXPECT_EQ(Expected::kSuccess, run(one, Mode::kThreads));
}

INSTANTIATE_TEST_SUITE_P(, MismatchTest,
                         ::testing::Combine(::testing::Values("tcp", "shm",
                                                              "auto"),
                                            ::testing::ValuesIn(kCollectives)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" +
                                  std::string(nameOf(std::get<1>(info.param)));
                         });

TEST(MismatchMatrix, HasAtLeast600CasesOfEachKind) {
  for (const bool direct : {false, true}) {
    int atOnce = 0;
    for (const Collective collective : kCollectives) {
      for (const Field field : kFields) {
        for (const Case& one : field(collective, direct)) {
          atOnce += MismatchOracle(one.calls(), direct).expected() ==
                    Expected::kMismatch;
        }
      }
    }
    EXPECT_LE(600, atOnce) << (direct ? "direct" : "messages");
  }
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
