// Ranks that disagree about a collective, over real connections: every pair of
// operations, and every field of the check words. All ranks must have the error
// within a second of the first contradictory message, and it must name the
// field and the ranks. Whether there is any such message is computed from the
// schedules; where there is none, the error comes at the deadline.
#include <gtest/gtest.h>

#include <barrier>
#include <numeric>
#include <optional>

#include "algorithms/state.h"
#include "gloo/common/error.h"
#include "gloo/internal/check.h"
#include "gloo/types.h"
#include "tests/support/process_group.h"
#include "tests/support/transports.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace algorithms;  // NOLINT: everything here is about it
using internal::ElementType;
using internal::Reduction;
using std::chrono::milliseconds;

constexpr int kRanks = 3;
constexpr uint32_t kTag = 9;
constexpr milliseconds kLongTimeout{20000};
constexpr milliseconds kShortTimeout{200};

constexpr Collective kAll[] = {
    Collective::kAllreduce,      Collective::kReduce,
    Collective::kBroadcast,      Collective::kBarrier,
    Collective::kScatter,        Collective::kGather,
    Collective::kGatherv,        Collective::kAllgather,
    Collective::kAllgatherv,     Collective::kReduceScatter,
    Collective::kReduceScatterv, Collective::kAlltoall,
    Collective::kAlltoallv,
};

// One rank's call. Borrows nothing.
struct Call {
  Collective collective = Collective::kAllreduce;
  size_t count = 5;  // of each block where counts differ by rank
  ElementType type = ElementType::kInt32;
  Reduction reduction = Reduction::kUnknown;
  size_t elementSize = 4;
  int root = 0;
  const char* algorithm = nullptr;
  // Calls with this tag before, that exchange nothing.
  int before = 0;
};

bool hasCounts(Collective c) {
  return c == Collective::kGatherv || c == Collective::kAllgatherv ||
         c == Collective::kReduceScatterv || c == Collective::kAlltoallv;
}
// All ranks know all counts.
bool sharesCounts(Collective c) {
  return c != Collective::kGatherv && c != Collective::kAlltoallv;
}
bool reduces(Collective c) {
  return c == Collective::kAllreduce || c == Collective::kReduce ||
         c == Collective::kReduceScatter || c == Collective::kReduceScatterv;
}
bool hasRoot(Collective c) {
  return c == Collective::kReduce || c == Collective::kBroadcast ||
         c == Collective::kScatter || c == Collective::kGather ||
         c == Collective::kGatherv;
}

Call callOf(Collective collective) {
  Call call;
  call.collective = collective;
  call.reduction = reduces(collective) ? Reduction::kSum : Reduction::kUnknown;
  if (collective == Collective::kBarrier) {
    call.count = 1;
    call.type = ElementType::kUnknown;
    call.elementSize = 1;
  }
  return call;
}

// What the free functions make of such a call.
struct Prepared {
  explicit Prepared(const Call& call)
      : input(kRanks * call.count * call.elementSize + 1),
        output(input.size()) {
    request.collective = call.collective;
    request.type = call.type;
    request.reduction = call.reduction;
    request.elementSize = call.elementSize;
    request.root = call.root;
    request.forced = call.algorithm;
    if (hasCounts(call.collective)) {
      for (size_t i = 0; i <= kRanks; i++) {
        offsets.push_back(i * call.count);
      }
      request.counts.sendOffsets = request.counts.recvOffsets = offsets.data();
    } else {
      request.counts.count = call.count;
    }
    arguments.input = input.data();
    arguments.output = output.data();
    arguments.kernel =
        kernelFor(call.type, reduces(call.collective) ? call.reduction
                                                      : Reduction::kUnknown);
    if (arguments.kernel == nullptr) {
      arguments.function = &join;
    }
    arguments.prefix = static_cast<uint8_t>(call.collective);
    arguments.tag = kTag;
  }

  const internal::ReduceFunction join = [](void*, const void*, const void*,
                                           size_t) {};
  std::vector<char> input;
  std::vector<char> output;
  std::vector<size_t> offsets;
  Request request;
  Arguments arguments;
};

// ---- Which messages leave while ranks disagree. ----

class Oracle {
 public:
  explicit Oracle(const std::vector<Call>& calls) {
    const Selection selection(internal::Profile{}, kRanks, "");
    for (int rank = 0; rank < kRanks; rank++) {
      const Call& call = calls[static_cast<size_t>(rank)];
      const Prepared prepared(call);
      plans_.push_back(
          std::make_unique<Plan>(prepared.request, rank, kRanks, 2, selection));
      words_.push_back(internal::withSequence(
          plans_.back()->check(), static_cast<uint16_t>(1 + call.before)));
      done_.emplace_back(plans_.back()->program().actions.size(), false);
    }
    while (step()) {
    }
  }

  // A message reaches a rank that contradicts it.
  bool contradicts() const { return contradicts_; }
  // Otherwise: somebody waits for a message that does not come.
  bool hangs() const {
    for (const auto& done : done_) {
      if (std::find(done.begin(), done.end(), false) != done.end()) {
        return true;
      }
    }
    return false;
  }

 private:
  bool step() {
    bool moved = false;
    for (size_t rank = 0; rank < plans_.size(); rank++) {
      const Program& program = plans_[rank]->program();
      for (size_t i = 0; i < program.actions.size(); i++) {
        if (!done_[rank][i] && isReady(rank, program, program.actions[i]) &&
            perform(rank, program.actions[i])) {
          done_[rank][i] = true;
          moved = true;
        }
      }
    }
    return moved;
  }

  bool isReady(size_t rank, const Program& program, const Action& action) {
    const uint32_t* waits = program.waits.data() + action.firstWait;
    return std::all_of(waits, waits + action.waitCount,
                       [&](uint32_t i) { return done_[rank][i]; });
  }

  bool perform(size_t rank, const Action& action) {
    const auto peer = static_cast<size_t>(action.peer);
    if (action.kind == ActionKind::kSend) {
      contradicts_ =
          contradicts_ || !internal::checksAgree(words_[rank], words_[peer]);
      sent_[rank][peer]++;
    } else if (action.kind == ActionKind::kRecv) {
      if (!internal::checksAgree(words_[rank], words_[peer]) ||
          sent_[peer][rank] == 0) {
        return false;
      }
      sent_[peer][rank]--;
    }
    return true;
  }

  std::vector<std::unique_ptr<Plan>> plans_;
  std::vector<uint64_t> words_;
  std::vector<std::vector<bool>> done_;
  int sent_[kRanks][kRanks] = {};
  bool contradicts_ = false;
};

// ---- Running. ----

struct Outcome {
  std::string type = "none";
  std::string text;
  std::chrono::steady_clock::duration took{};
};

template <typename Function>
bool record(Outcome& outcome, const Function& function) {
  try {
    function();
    return false;
  } catch (const MismatchException& e) {
    outcome.type = "mismatch";
    outcome.text = e.what();
  } catch (const TimeoutException& e) {
    outcome.type = "timeout";
    outcome.text = e.what();
  } catch (const std::exception& e) {
    outcome.type = "other";
    outcome.text = e.what();
  }
  return true;
}

// The call's exception; else that of the context, if it fails within a second.
Outcome outcomeOf(transport::Context& context, State& state, const Call& call,
                  milliseconds timeout, bool expectError) {
  Outcome outcome;
  const auto start = now();
  const auto run = [&](const Call& which) {
    Prepared prepared(which);
    prepared.arguments.timeout = timeout;
    state.run(prepared.request, prepared.arguments);
  };
  const auto limit = start + timeout + std::chrono::seconds(2) * slowness();
  bool failed = record(outcome, [&] {
    for (int i = 0; i < call.before; i++) {
      Call empty = call;
      empty.count = 0;
      run(empty);
    }
    run(call);
  });
  while (!failed && expectError && now() < limit) {
    failed = record(outcome, [&] { context.createUnboundBuffer(nullptr, 0); });
    std::this_thread::yield();
  }
  outcome.took = now() - start;
  return outcome;
}

const DeviceMaker& tcp() { return transports().front().make; }

std::vector<Outcome> runAll(const std::vector<Call>& calls,
                            milliseconds timeout, bool expectError) {
  std::vector<Outcome> outcomes(kRanks);
  std::barrier together(kRanks);
  spawn(Mode::kThreads, tcp(), kRanks,
        [&](const std::shared_ptr<transport::Context>& context) {
          State state(internal::Channel::of(*context),
                      *internal::profileOf(*context), "", 2);
          const auto rank = static_cast<size_t>(context->rank);
          together.arrive_and_wait();
          outcomes[rank] =
              outcomeOf(*context, state, calls[rank], timeout, expectError);
          together.arrive_and_wait();
        });
  return outcomes;
}

// How many cases a test has seen, and how many of them exchange nothing that
// contradicts.
struct Tally {
  int cases = 0;
  int late = 0;
  int silent = 0;
};

void expectMismatch(const std::vector<Outcome>& outcomes,
                    const std::string& field, int odd) {
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ("mismatch", outcome.type) << outcome.text;
    EXPECT_NE(std::string::npos, outcome.text.find(field)) << outcome.text;
    EXPECT_NE(std::string::npos,
              outcome.text.find(MakeString(" on rank ", odd)))
        << outcome.text;
    EXPECT_LT(outcome.took, std::chrono::seconds(1) * slowness());
  }
}

// Rank `odd` calls `other`, all others `call`; the error names `field`.
void disagree(Tally& tally, const Call& call, const Call& other, int odd,
              const std::string& field) {
  SCOPED_TRACE(MakeString(nameOf(call.collective), ", but ",
                          nameOf(other.collective), " on rank ", odd, ": ",
                          field, ", root ", call.root, " and ", other.root));
  std::vector<Call> calls(kRanks, call);
  calls[static_cast<size_t>(odd)] = other;
  const Oracle oracle(calls);
  tally.cases++;
  if (oracle.contradicts()) {
    expectMismatch(runAll(calls, kLongTimeout, true), field, odd);
    return;
  }
  tally.late += oracle.hangs() ? 1 : 0;
  tally.silent += oracle.hangs() ? 0 : 1;
  const char* const expected = oracle.hangs() ? "timeout" : "none";
  for (const Outcome& outcome : runAll(calls, kShortTimeout, oracle.hangs())) {
    EXPECT_EQ(expected, outcome.type) << outcome.text;
    EXPECT_LT(outcome.took,
              kShortTimeout + std::chrono::seconds(1) * slowness());
  }
}

class MismatchTest : public ::testing::TestWithParam<Collective> {
 protected:
  void SetUp() override { SKIP_UNLESS_AVAILABLE(transports().front()); }
  void TearDown() override {
    RecordProperty("cases", tally_.cases);
    RecordProperty("at_the_deadline", tally_.late);
    RecordProperty("without_messages", tally_.silent);
  }

  // A field of which one rank has another value.
  void expectNamed(const Call& call, const Call& other,
                   const std::string& field) {
    for (int odd = 0; odd < kRanks; odd++) {
      disagree(tally_, call, other, odd, field);
    }
  }

  Tally tally_;
};

TEST_P(MismatchTest, AnyOtherOperation) {
  for (const Collective other : kAll) {
    if (other != GetParam()) {
      expectNamed(callOf(GetParam()), callOf(other), "operation: ");
    }
  }
}

TEST_P(MismatchTest, CountOrCounts) {
  if (!sharesCounts(GetParam()) || GetParam() == Collective::kBarrier) {
    return;  // a rank's counts are its own business
  }
  for (const size_t count : {size_t{6}, size_t{0}, size_t{1} << 20}) {
    Call other = callOf(GetParam());
    other.count = count;
    expectNamed(callOf(GetParam()), other, "number of elements: ");
  }
}

TEST_P(MismatchTest, ElementTypeOrSize) {
  const Call call = callOf(GetParam());
  Call other = call;
  other.elementSize = call.elementSize * 2;
  if (GetParam() == Collective::kBarrier) {
    expectNamed(call, other, "element size");
    return;
  }
  other.type = ElementType::kInt64;
  expectNamed(call, other, "element type: ");
  other.type = ElementType::kUnknown;
  expectNamed(call, other, "element size");
  other = call;
  other.type = ElementType::kFloat32;
  expectNamed(call, other, "element type: ");
}

TEST_P(MismatchTest, Reduction) {
  const Call call = callOf(GetParam());
  for (const Reduction reduction : {Reduction::kProduct, Reduction::kMin,
                                    Reduction::kMax, Reduction::kAverage}) {
    Call other = call;
    other.reduction = reduction;
    if (reduces(GetParam())) {
      expectNamed(call, other, "reduction: ");
    }
  }
}

TEST_P(MismatchTest, Algorithm) {
  for (const AlgorithmInfo& one : algorithmsOf(GetParam())) {
    for (const AlgorithmInfo& two : algorithmsOf(GetParam())) {
      const Setting setting{0, kRanks, 0, 2};
      if (one.id != two.id && one.offers(setting) && two.offers(setting)) {
        Call call = callOf(GetParam());
        Call other = call;
        call.algorithm = one.name.data();
        other.algorithm = two.name.data();
        expectNamed(call, other, "algorithm: ");
      }
    }
  }
}

TEST_P(MismatchTest, Root) {
  for (int root = 0; root < kRanks && hasRoot(GetParam()); root++) {
    for (int step = 1; step < kRanks; step++) {
      Call call = callOf(GetParam());
      Call other = call;
      call.root = root;
      other.root = (root + step) % kRanks;
      expectNamed(call, other, "root: ");
    }
  }
}

// Without elements nothing travels, and nothing is wrong.
TEST_P(MismatchTest, NoElements) {
  for (const Collective other : kAll) {
    Call mine = callOf(GetParam());
    Call theirs = callOf(other);
    mine.count = theirs.count = 0;
    disagree(tally_, mine, theirs, 1, "");
  }
  EXPECT_EQ(tally_.cases, tally_.silent);
}

// One rank has missed a call with this tag that exchanged nothing.
TEST_P(MismatchTest, Sequence) {
  const Call call = callOf(GetParam());
  Call other = call;
  other.before = 1;
  expectNamed(call, other, " on rank ");
  expectNamed(other, call, " on rank ");
}

INSTANTIATE_TEST_SUITE_P(, MismatchTest, ::testing::ValuesIn(kAll),
                         [](const auto& info) {
                           return std::string(nameOf(info.param));
                         });

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
