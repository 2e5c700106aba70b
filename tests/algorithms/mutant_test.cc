// Broken schedules and programs: the verifier finds every one.
//
// A change that leaves every rank with what it had is no mutant. Such changes
// are told by a rule that says why (kEquivalent below), and the rule is
// checked: the verifier has to accept every one of them.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "gloo/common/error.h"
#include "tests/algorithms/jobs.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::verify {
namespace {

enum class Verdict { kNone, kBroken, kEquivalent };

// A job, and the right programs of all its ranks.
class Subject {
 public:
  // Every block has elements, so that no step is without effect.
  Subject(const AlgorithmInfo& info, int size, int root, size_t stageBytes,
          const HostMap* hosts)
      : job_(makeJob(info, size, root, 3, hosts)) {
    job_.counts.clear();
    job_.radix = 3;
    job_.options.window = 64;
    job_.options.stageBytes = stageBytes;
    programs_ = programsOf(job_);
    EXPECT_EQ("", verifyPrograms(job_, programs_).error) << job_.str();
  }

  const Job& job() const { return job_; }
  const Program& program(int rank) const {
    return programs_[static_cast<size_t>(rank)];
  }

  std::vector<Step> stepsOf(int rank) const {
    const Schedule schedule = job_.algorithm->schedule(job_.setting(rank));
    std::vector<Step> steps;
    for (int i = 0; i < schedule.steps(); i++) {
      if (schedule.step(i).kind != StepKind::kIdle) {
        steps.push_back(schedule.step(i));
      }
    }
    return steps;
  }

  // What the verifier says if `rank` runs this instead.
  std::string errorWith(int rank, Program program) {
    Program& own = programs_[static_cast<size_t>(rank)];
    std::swap(own, program);
    std::string error = verifyPrograms(job_, programs_).error;
    std::swap(own, program);
    return error;
  }
  std::string errorWith(int rank, const std::vector<Step>& steps) {
    try {
      return errorWith(
          rank, expandSteps(steps, job_.layouts(rank), job_.optionsOf(rank)));
    } catch (const InvalidOperationException& e) {
      return e.what();
    }
  }

 private:
  Job job_;
  std::vector<Program> programs_;
};

// Mutants by kind and by algorithm.
class Tally {
 public:
  void judge(const std::string& kind, const Subject& subject, Verdict verdict,
             const std::string& error, int rank, size_t at) {
    Count& count = kinds_[kind];
    if (verdict == Verdict::kEquivalent) {
      count.equivalent++;
      EXPECT_EQ("", error) << kind << ": " << subject.job().str() << ": rank "
                           << rank << " at " << at;
      return;
    }
    count.broken++;
    algorithms_[subject.job().algorithm]++;
    EXPECT_NE("", error) << kind << ": " << subject.job().str() << ": rank "
                         << rank << " at " << at;
  }

  void print() const {
    for (const auto& [kind, count] : kinds_) {
      std::printf("%6d mutants: %s (and %d equivalent)\n", count.broken,
                  kind.c_str(), count.equivalent);
    }
  }
  int total() const {
    int sum = 0;
    for (const auto& [kind, count] : kinds_) {
      sum += count.broken;
    }
    return sum;
  }
  int of(const std::string& kind) const { return kinds_.at(kind).broken; }
  int of(const AlgorithmInfo& info) const {
    const auto it = algorithms_.find(&info);
    return it == algorithms_.end() ? 0 : it->second;
  }

 private:
  struct Count {
    int broken = 0;
    int equivalent = 0;
  };
  std::map<std::string, Count> kinds_;
  std::map<const AlgorithmInfo*, int> algorithms_;
};

// ---- Mutants of schedules: of one step of one rank. ----

using Mutation = Verdict (*)(const Job& job, std::vector<Step>& steps,
                             size_t at);

Verdict dropStep(const Job&, std::vector<Step>& steps, size_t at) {
  steps.erase(steps.begin() + static_cast<long>(at));
  return Verdict::kBroken;
}

// To copy twice is to copy once.
Verdict repeatStep(const Job&, std::vector<Step>& steps, size_t at) {
  const Step step = steps[at];
  steps.insert(steps.begin() + static_cast<long>(at), step);
  return step.kind == StepKind::kCopy ? Verdict::kEquivalent : Verdict::kBroken;
}

Verdict swapPeer(const Job& job, std::vector<Step>& steps, size_t at) {
  if (steps[at].peer < 0) {
    return Verdict::kNone;
  }
  steps[at].peer = wrap(steps[at].peer + 1, job.size);
  return Verdict::kBroken;
}

Blocks& blocksOf(Step& step) {
  return step.kind == StepKind::kSend ? step.source : step.target;
}

int blocksIn(const Job& job, Area area) {
  const Layouts layouts = job.layouts(0);
  return area == Area::kInput    ? layouts.input.blocks
         : area == Area::kOutput ? layouts.output.blocks
                                 : layouts.scratch.blocks;
}

Verdict shiftBlocks(const Job& job, std::vector<Step>& steps, size_t at) {
  Blocks& blocks = blocksOf(steps[at]);
  const int all = blocksIn(job, blocks.area);
  if (all == blocks.count) {
    return Verdict::kNone;
  }
  blocks.first = wrap(blocks.first + 1, all);
  return Verdict::kBroken;
}

Verdict shortenBlocks(const Job&, std::vector<Step>& steps, size_t at) {
  steps[at].source.count--;
  steps[at].target.count--;
  Blocks& blocks = blocksOf(steps[at]);
  return blocks.count >= 0 ? Verdict::kBroken : Verdict::kNone;
}

// A union of sets has no order.
Verdict swapOperands(const Job& job, std::vector<Step>& steps, size_t at) {
  if (steps[at].kind != StepKind::kRecvReduce) {
    return Verdict::kNone;
  }
  steps[at].ownFirst = !steps[at].ownFirst;
  return job.algorithm->collective == Collective::kBarrier
             ? Verdict::kEquivalent
             : Verdict::kBroken;
}

// A receive that overwrites instead of being reduced.
Verdict forgetReduction(const Job&, std::vector<Step>& steps, size_t at) {
  const Step step = steps[at];
  if (step.kind != StepKind::kRecvReduce) {
    return Verdict::kNone;
  }
  steps[at] = Step::recv(step.round, step.peer, step.target);
  return Verdict::kBroken;
}

void mutateSteps(const char* kind, Mutation mutate, Subject& subject,
                 Tally& tally) {
  const Job& job = subject.job();
  for (const int rank : std::set<int>{0, 1, job.size - 1}) {
    const std::vector<Step> steps = subject.stepsOf(rank);
    for (size_t i = 0; i < steps.size(); i++) {
      std::vector<Step> broken = steps;
      const Verdict verdict = mutate(job, broken, i);
      if (verdict != Verdict::kNone) {
        tally.judge(kind, subject, verdict, subject.errorWith(rank, broken),
                    rank, i);
      }
    }
  }
}

// ---- Mutants of programs: what the executor would do. ----

// Whether `before` has to be done for `action` even without the direct wait.
bool isImplied(const Program& program, uint32_t action, uint32_t before,
               uint32_t without) {
  const Action& a = program.actions[action];
  for (uint32_t w = 0; w < a.waitCount; w++) {
    const uint32_t next = program.waits[a.firstWait + w];
    if (a.firstWait + w == without || next < before) {
      continue;
    }
    if (next == before || isImplied(program, next, before, without)) {
      return true;
    }
  }
  return false;
}

// An action that starts too early, unless others make it wait as well.
void dropWaits(Subject& subject, Tally& tally) {
  const Program& right = subject.program(0);
  for (uint32_t i = 0; i < right.actions.size(); i++) {
    const Action& action = right.actions[i];
    for (uint32_t w = 0; w < action.waitCount; w++) {
      const uint32_t at = action.firstWait + w;
      const uint32_t before = right.waits[at];
      Program broken = right;
      std::swap(broken.waits[at],
                broken.waits[action.firstWait + action.waitCount - 1]);
      broken.actions[i].waitCount--;
      const bool reuses = right.actions[before].kind == ActionKind::kSend ||
                          action.kind == ActionKind::kRecv;
      tally.judge(reuses ? "memory reused early" : "memory read early", subject,
                  isImplied(right, i, before, at) ? Verdict::kEquivalent
                                                  : Verdict::kBroken,
                  subject.errorWith(0, std::move(broken)), 0, i);
    }
  }
}

void changeLengths(Subject& subject, Tally& tally) {
  const int rank = subject.job().size - 1;
  const Program& right = subject.program(rank);
  for (size_t i = 0; i < right.actions.size(); i++) {
    const ActionKind kind = right.actions[i].kind;
    if (kind == ActionKind::kSend || kind == ActionKind::kRecv) {
      Program broken = right;
      broken.actions[i].bytes--;
      tally.judge("message of another length", subject, Verdict::kBroken,
                  subject.errorWith(rank, std::move(broken)), rank, i);
    }
  }
}

// A message that may start before the one before it to the same peer, or that
// follows one to another peer, if at all.
void breakChains(Subject& subject, Tally& tally) {
  const Program& right = subject.program(0);
  for (size_t i = 0; i < right.actions.size(); i++) {
    const Action& action = right.actions[i];
    if (action.kind != ActionKind::kSend && action.kind != ActionKind::kRecv) {
      continue;
    }
    std::set<int32_t> others{-1};
    for (size_t before = 0; before < i; before++) {
      const Action& other = right.actions[before];
      if (other.kind == action.kind && other.peer != action.peer) {
        others = {-1, static_cast<int32_t>(before)};
      }
    }
    others.erase(action.after);
    for (const int32_t other : others) {
      Program broken = right;
      broken.actions[i].after = other;
      tally.judge(other < 0 ? "order forgotten" : "order of another peer's",
                  subject, Verdict::kBroken,
                  subject.errorWith(0, std::move(broken)), 0, i);
    }
  }
}

// One action more, after all others: every rank has its result.
void writeIntoInput(Subject& subject, Tally& tally) {
  const int rank = subject.job().root;
  if (subject.job().layouts(rank).input.elements < 2) {
    return;
  }
  Program broken = subject.program(rank);
  const size_t at = broken.actions.size();
  Action copy;
  copy.kind = ActionKind::kCopy;
  copy.bytes = 1;
  copy.source = {Memory::kInput, 0};
  copy.target = {Memory::kInput, 1};
  copy.firstWait = static_cast<uint32_t>(broken.waits.size());
  copy.waitCount = static_cast<uint32_t>(at);
  for (size_t i = 0; i < at; i++) {
    broken.waits.push_back(static_cast<uint32_t>(i));
  }
  broken.actions.push_back(copy);
  const std::string error = subject.errorWith(rank, std::move(broken));
  tally.judge("input written", subject, Verdict::kBroken, error, rank, at);
  EXPECT_NE(std::string::npos, error.find("into the input")) << error;
}

TEST(Mutants, AreAllFound) {
  const std::pair<const char*, Mutation> mutations[] = {
      {"step dropped", dropStep},
      {"step repeated", repeatStep},
      {"peer swapped", swapPeer},
      {"wrong block", shiftBlocks},
      {"too few blocks", shortenBlocks},
      {"wrong operand order", swapOperands},
      {"reduction forgotten", forgetReduction}};
  Tally tally;
  for (const AlgorithmInfo& info : catalogue()) {
    for (const int size : {2, 3, 4, 6, 7, 8}) {
      const int root = rootsOf(info, size) > 1 ? size / 3 : 0;
      const HostMap hosts = threePerHost(size);
      if (!info.offers({0, size, root, 2, &hosts})) {
        continue;
      }
      Subject subject(info, size, root, 256, &hosts);
      for (const auto& [kind, mutation] : mutations) {
        mutateSteps(kind, mutation, subject, tally);
      }
      changeLengths(subject, tally);
      writeIntoInput(subject, tally);
      breakChains(subject, tally);
      Subject tight(info, size, root, 1, &hosts);
      dropWaits(tight, tally);
    }
    EXPECT_GE(tally.of(info), 20) << nameOf(info.collective) << info.name;
  }
  tally.print();
  for (const auto& [kind, mutation] : mutations) {
    EXPECT_GE(tally.of(kind), 50) << kind;
  }
  EXPECT_GE(tally.of("memory reused early"), 50);
  EXPECT_GE(tally.of("input written"), 50);
  EXPECT_GE(tally.of("order forgotten"), 50);
  EXPECT_GE(tally.of("order of another peer's"), 50);
  EXPECT_GE(tally.total(), 500);
}

// Whose sum holds rank 0 all the time, and every rank once at the end.
TEST(Mutants, AnotherChainThanThatOfTheRanksIsFound) {
  for (const AlgorithmInfo& info : catalogue()) {
    for (int size = 4; info.name == kInOrder && size <= 8; size++) {
      Subject subject(info, size, 0, 256, nullptr);
      std::vector<Step> steps = subject.stepsOf(size - 1);
      for (Step& step : steps) {
        const bool swapped = step.peer == 1 || step.peer == 2;
        if (step.kind == StepKind::kRecvReduce && swapped) {
          step.peer = 3 - step.peer;
        }
      }
      EXPECT_NE(std::string::npos,
                subject.errorWith(size - 1, steps).find("is wrong"))
          << subject.job().str();
    }
  }
}

// Synchronous sends: where everybody sends first and receives afterwards,
// nobody ever does.
TEST(Mutants, AWindowOfSendsOnlyIsADeadlock) {
  const AlgorithmInfo* ring = findAlgorithm(Collective::kAllreduce, "ring");
  ASSERT_NE(nullptr, ring);
  const Job job = makeJob(*ring, 4, 0, 2);
  std::vector<Program> programs = programsOf(job);
  for (Program& program : programs) {
    program.window = 1;
  }
  EXPECT_NE(std::string::npos,
            verifyPrograms(job, programs).error.find("deadlock"));
}

}  // namespace
}  // namespace algorithms::verify
GLOO_NAMESPACE_END
