// Ranks that disagree about a collective, through the API, over messages and in
// mapped memory: every pair of operations, and every field of the check words.
// All ranks must have the error within a second of the first contradiction, and
// it must name the field and the ranks. Whether anything contradicts is
// computed from the schedules; docs/failures.md lists when nothing does.
#include <gtest/gtest.h>

#include <thread>

#include "gloo/common/error.h"
#include "gloo/internal/statistics.h"
#include "tests/algorithms/mismatch_cases.h"
#include "tests/algorithms/mismatch_oracle.h"
#include "tests/algorithms/rank_call.h"
#include "tests/support/process_group.h"
#include "tests/support/transports.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using algorithms::nameOf;
using internal::Reduction;
using std::chrono::milliseconds;
using ContextPtr = std::shared_ptr<Context>;

constexpr milliseconds kLongTimeout{20000};
constexpr milliseconds kShortTimeout{100};

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
  context->base = call.base;
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

// The field, and both ranks' values, in either order.
bool says(const std::string& text, const Named& named, int odd) {
  const auto has = [&text](const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  if (!has(named.field) || !has(MakeString(" on rank ", odd))) {
    return false;
  }
  if (!named.values) {
    return true;
  }
  const auto& [usual, other] = *named.values;
  return has(MakeString(" ", other, " on rank ", odd)) &&
         (has(MakeString(" ", usual, " on rank ", (odd + 1) % kRanks)) ||
          has(MakeString(" ", usual, " on rank ", (odd + 2) % kRanks)));
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
      EXPECT_EQ("mismatch", outcome.type) << outcome.text;
      EXPECT_TRUE(says(outcome.text, one.named, one.odd) ||
                  (one.orNamed && says(outcome.text, *one.orNamed, one.odd)))
          << outcome.text;
      break;
    case Expected::kNextMismatch:  // the counts that are hashed stay so
      EXPECT_EQ("mismatch", outcome.type) << outcome.text;
      EXPECT_TRUE(says(outcome.text, {one.named.field}, one.odd))
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
    return isRooted(call.collective) || call.call.count == 0;
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

  bool hasMappedMemory() const {
    return transport_->name == "shm" || transport_->name == "auto";
  }

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
TEST_P(MismatchTest, SegmentSize) { expectAll(segments); }
TEST_P(MismatchTest, Base) { expectAll(bases); }
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
  const Case one{call, other, 1, {}};
  EXPECT_EQ(Expected::kSuccess, run(one, Mode::kThreads));
}

std::string nameOfCase(
    const ::testing::TestParamInfo<MismatchTest::ParamType>& info) {
  return std::get<0>(info.param) + "_" +
         std::string(nameOf(std::get<1>(info.param)));
}

INSTANTIATE_TEST_SUITE_P(, MismatchTest,
                         ::testing::Combine(::testing::Values("tcp", "shm"),
                                            ::testing::ValuesIn(kCollectives)),
                         nameOfCase);
#if GLOO_HAVE_TRANSPORT_IBVERBS
INSTANTIATE_TEST_SUITE_P(Verbs, MismatchTest,
                         ::testing::Combine(::testing::Values("ibverbs"),
                                            ::testing::ValuesIn(kCollectives)),
                         nameOfCase);
#endif
// Between ranks of one host the chosen device is that of shared memory, and who
// is connected late has the same messages: what a reduction and a root add is
// enough.
INSTANTIATE_TEST_SUITE_P(
    Chosen, MismatchTest,
    ::testing::Combine(::testing::Values("auto", "tcp_lazy"),
                       ::testing::Values(Collective::kAllreduce,
                                         Collective::kBroadcast)),
    nameOfCase);

// Success costs the 8 bytes in the headers of what travels anyway: of two ranks
// one message each, and hardly a frame that only returns credits, which is what
// who waits for long would say so with.
TEST(MismatchMatrix, RanksThatAgreeSendNothingForIt) {
  static constexpr uint64_t kCalls = 100;
  spawnContexts(
      Mode::kThreads, chosenTransport().make, 2, [](const ContextPtr& context) {
        const RankCall call = callOf(Collective::kAllreduce);
        performRight(context, call);
        const auto& device = *context->getDevice();
        const auto before = internal::statisticsOf(device);
        for (uint64_t i = 0; i < kCalls; i++) {
          performRight(context, call);
        }
        const auto after = internal::statisticsOf(device);
        EXPECT_EQ(after.eagerSent - before.eagerSent, kCalls);
        EXPECT_LE(after.framesSent - before.framesSent, kCalls + kCalls / 20);
      });
}

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
