// Random operations on random sizes against an oracle. All ranks derive the
// same plan from the seed, so no talk is needed beside the operations. A short
// run always; GLOO_SOAK_SECONDS makes it longer.
#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <cstdlib>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/broadcast.h"
#include "gloo/common/string.h"
#include "gloo/internal/algorithms.h"
#include "gloo/math.h"
#include "tests/multiprocess/job.h"
#include "tests/multiprocess/soak_memory.h"
#include "tests/multiprocess/soak_plan.h"
#include "tests/support/collectives.h"
#include "tests/support/transports.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using std::chrono::seconds;

void doAllreduce(const std::shared_ptr<Context>& context, const Step& step) {
  auto values = inputs(step, context->rank);
  AllreduceOptions options(context);
  options.setTag(static_cast<uint32_t>(step.number));
  options.setOutput(values.data(), values.size());
  void (*add)(void*, const void*, const void*, size_t) = &sum<uint64_t>;
  options.setReduceFunction(add);
  allreduce(options);
  check(step, values, [&](size_t i) {
    uint64_t total = 0;
    for (int rank = 0; rank < context->size; rank++) {
      total += input(step.number, rank, i);
    }
    return total;
  });
}

void doBroadcast(const std::shared_ptr<Context>& context, const Step& step) {
  const int root = step.root(context->size);
  auto values = context->rank == root ? inputs(step, root)
                                      : std::vector<uint64_t>(step.elements);
  BroadcastOptions options(context);
  options.setTag(static_cast<uint32_t>(step.number));
  options.setRoot(root);
  options.setOutput(values.data(), values.size());
  broadcast(options);
  check(step, values, [&](size_t i) { return input(step.number, root, i); });
}

void doShift(const std::shared_ptr<Context>& context, const Step& step) {
  const int size = context->size;
  const int by = size > 1 ? 1 + step.root(size - 1) : 0;
  if (by == 0) {
    return;
  }
  auto out = inputs(step, context->rank);
  std::vector<uint64_t> in(step.elements);
  const int source = (context->rank + size - by) % size;
  auto send = context->createUnboundBuffer(out.data(), 8 * out.size());
  auto recv = context->createUnboundBuffer(in.data(), 8 * in.size());
  const bool receiveFirst = ((step.random >> 33) + context->rank) % 2 == 0;
  if (receiveFirst) {
    recv->recv(source, step.number);
  }
  send->send((context->rank + by) % size, step.number);
  if (!receiveFirst) {
    recv->recv(source, step.number);
  }
  EXPECT_TRUE(recv->waitRecv());
  EXPECT_TRUE(send->waitSend());
  check(step, in, [&](size_t i) { return input(step.number, source, i); });
}

// In place of waiting: aborts, and says whether the operation was over before.
template <typename Abort, typename Wait>
bool aborted(bool byAnother, const Abort& abort, const Wait& wait) {
  if (byAnother) {
    std::thread other(abort);
    const bool done = wait();
    other.join();
    return !done;
  }
  abort();
  return !wait();
}

// Sends, and aborts that; what was taken back is sent again. Once at the peer.
void sendAborted(const std::shared_ptr<Context>& context, const Step& step,
                 int peer, bool byAnother) {
  auto out = inputs(step, context->rank);
  auto send = context->createUnboundBuffer(out.data(), 8 * out.size());
  send->send(peer, step.number);
  if (aborted(
          byAnother, [&] { send->abortWaitSend(); },
          [&] { return send->waitSend(); })) {
    std::fill(out.begin(), out.end(), 0);  // not these
    out = inputs(step, context->rank);
    auto again = context->createUnboundBuffer(out.data(), 8 * out.size());
    again->send(peer, step.number);
    EXPECT_TRUE(again->waitSend());
  }
}

// Receives, and aborts that; what did not come then comes to other memory.
void recvAborted(const std::shared_ptr<Context>& context, const Step& step,
                 int peer, bool byAnother) {
  constexpr uint64_t kUntouched = 0xa5a5a5a5a5a5a5a5;
  const auto expected = [&](size_t i) { return input(step.number, peer, i); };
  std::vector<uint64_t> in(step.elements, kUntouched);
  auto recv = context->createUnboundBuffer(in.data(), 8 * in.size());
  recv->recv(peer, step.number);
  if (!aborted(
          byAnother, [&] { recv->abortWaitRecv(); },
          [&] { return recv->waitRecv(); })) {
    check(step, in, expected);
    return;
  }
  std::vector<uint64_t> other(step.elements);
  auto again = context->createUnboundBuffer(other.data(), 8 * other.size());
  again->recv(peer, step.number);
  EXPECT_TRUE(again->waitRecv());
  check(step, other, expected);
  check(step, in, [](size_t) { return kUntouched; });
}

// A message to each rank. Its send or its receive is aborted while the peer
// does the other.
void doAbort(const std::shared_ptr<Context>& context, const Step& step) {
  const int size = context->size;
  const int by = size > 1 ? 1 + step.root(size - 1) : 0;
  if (by == 0) {
    return;
  }
  const int to = (context->rank + by) % size;
  const int from = (context->rank + size - by) % size;
  const bool byAnother = (step.random >> 36) % 4 == 0;
  auto out = inputs(step, context->rank);
  std::vector<uint64_t> in(step.elements);
  auto send = context->createUnboundBuffer(out.data(), 8 * out.size());
  auto recv = context->createUnboundBuffer(in.data(), 8 * in.size());
  if ((step.random >> 35) % 2 == 0) {
    recv->recv(from, step.number);
    sendAborted(context, step, to, byAnother);
    EXPECT_TRUE(recv->waitRecv());
    check(step, in, [&](size_t i) { return input(step.number, from, i); });
  } else {
    send->send(to, step.number);
    recvAborted(context, step, from, byAnother);
    EXPECT_TRUE(send->waitSend());
  }
}

// To one rank, which does not say from whom it takes.
void doGatherAny(const std::shared_ptr<Context>& context, const Step& step) {
  const int root = step.root(context->size);
  if (context->rank != root) {
    auto out = inputs(step, context->rank);
    auto send = context->createUnboundBuffer(out.data(), 8 * out.size());
    send->send(root, step.number);
    EXPECT_TRUE(send->waitSend());
    return;
  }
  std::vector<int> others;
  for (int rank = 0; rank < context->size; rank++) {
    if (rank != root) {
      others.push_back(rank);
    }
  }
  for (size_t n = 0; n < others.size(); n++) {
    std::vector<uint64_t> in(step.elements);
    auto recv = context->createUnboundBuffer(in.data(), 8 * in.size());
    recv->recv(others, step.number);
    int source = -1;
    EXPECT_TRUE(recv->waitRecv(&source));
    check(step, in, [&](size_t i) { return input(step.number, source, i); });
  }
}

// One of those that the collective's callers may ask for here; null: none.
const char* algorithmFor(const std::shared_ptr<Context>& context, size_t which,
                         uint64_t random) {
  static constexpr const char* kNames[testing_support::kChecks] = {
      "allreduce",      "reduce",          "broadcast", "scatter",
      "gather",         "gatherv",         "allgather", "allgatherv",
      "reduce_scatter", "reduce_scatterv", "alltoall",  "alltoallv"};
  for (const auto& offered : internal::algorithmNames(*context)) {
    const size_t names = offered.algorithms.size();
    if (offered.collective == kNames[which] && names > 0 && random % 2 == 0) {
      // Options borrow it.
      static std::set<std::string> kept;
      static std::mutex mutex;
      const std::lock_guard<std::mutex> lock(mutex);
      return kept.insert(offered.algorithms.at(random / 2 % names))
          .first->c_str();
    }
  }
  return nullptr;
}

// Any collective; roots, places, reductions and algorithms as they come.
void doAny(const std::shared_ptr<Context>& context, const Step& step) {
  using internal::Reduction;
  using testing_support::checkCollective;
  constexpr Reduction kReductions[] = {Reduction::kSum,    Reduction::kMin,
                                       Reduction::kMax,    Reduction::kAverage,
                                       Reduction::kCustom, Reduction::kProduct};
  std::mt19937_64 random(step.random);
  testing_support::Call call;
  call.count = step.elements / static_cast<size_t>(context->size);
  call.root = step.root(context->size);
  call.inPlace = random() % 2 == 0;
  call.tag = static_cast<uint32_t>(step.number);
  call.seed = static_cast<unsigned>(step.number % 1000);
  // Products of more ranks may leave a type.
  call.reduction = kReductions[random() % (context->size <= 16 ? 6 : 5)];
  const size_t which = random() % testing_support::kChecks;
  call.algorithm = algorithmFor(context, which, random());
  constexpr auto kTypes =
      std::array{&checkCollective<float>, &checkCollective<int16_t>,
                 &checkCollective<testing_support::Triple>,
                 &checkCollective<std::complex<double>>};
  ASSERT_EQ("", kTypes[random() % kTypes.size()](which, context, call))
      << "operation " << step.number << ", collective " << which << ", by "
      << (call.algorithm != nullptr ? call.algorithm : "any");
}

// What a rank keeps from step to step.
struct Kept {
  BoundRing bound;
  ExportedMemory exported;

  Kept(const std::shared_ptr<Context>& context, uint64_t stream)
      : bound(context, stream), exported(context, stream) {}
};

void perform(const std::shared_ptr<Context>& context, Kept& kept,
             const Step& step) {
  switch ((step.random >> 50) % 16) {
    case 0:
      return doAllreduce(context, step);
    case 1:
      return doBroadcast(context, step);
    case 2: {
      BarrierOptions options(context);
      options.setTag(static_cast<uint32_t>(step.number));
      return barrier(options);
    }
    case 3:
    case 4:
      return doShift(context, step);
    case 5:
      return doGatherAny(context, step);
    case 6:
    case 7:
      return kept.bound.shift(step);
    case 8:
      return kept.exported.put(step);
    case 9:
      return kept.exported.get(step);
    case 10:
      return doAbort(context, step);
    default:
      doAny(context, step);
  }
}

seconds soakTime() { return seconds(setting("SECONDS", 0)); }

// Seeds differ between long runs; a short run always does the same.
uint64_t firstSeed() {
  const char* text = std::getenv("GLOO_SOAK_SEED");
  if (text != nullptr) {
    return std::strtoull(text, nullptr, 10);
  }
  return soakTime().count() == 0
             ? 1
             : static_cast<uint64_t>(now().count() % 1000000007);
}

void soak(Mode mode, int size, uint64_t seed, int steps) {
  SCOPED_TRACE(MakeString("GLOO_SOAK_SEED=", seed, ", ", size, " ranks"));
  spawnContexts(mode, chosenTransport(false).make, size,
                [&](const std::shared_ptr<Context>& context) {
                  std::mt19937_64 random(seed);
                  Kept kept(context, 0);
                  for (int i = 0; i < steps; i++) {
                    perform(context, kept,
                            Step(static_cast<uint64_t>(i), random));
                    if (::testing::Test::HasFatalFailure()) {
                      return;
                    }
                  }
                });
}

// Several threads on one context, each with operations of its own, one after
// the other; in which order they come along differs between ranks.
void soakThreads(Mode mode, const TestTransport& transport, int size,
                 uint64_t seed, int steps) {
  SCOPED_TRACE(MakeString("GLOO_SOAK_SEED=", seed, ", ", size, " ranks, ",
                          transport.name));
  static constexpr uint64_t kStreams = 4;
  spawnContexts(
      mode, transport.make, size, [&](const std::shared_ptr<Context>& context) {
        std::vector<std::thread> threads;
        for (uint64_t i = 0; i < kStreams; i++) {
          const uint64_t stream =
              (i + static_cast<uint64_t>(context->rank)) % kStreams;
          threads.emplace_back([&context, stream, seed, steps] {
            std::mt19937_64 random(kStreams * seed + stream);
            Kept kept(context, stream);
            for (int step = 0; step < steps; step++) {
              perform(context, kept,
                      Step(stream << 20 | static_cast<uint64_t>(step), random));
            }
          });
        }
        for (std::thread& thread : threads) {
          thread.join();
        }
      });
}

class SoakTest : public ::testing::TestWithParam<Mode> {};

TEST_P(SoakTest, RandomOperationsGiveWhatTheOracleSays) {
  const auto until = now() + soakTime() / 2;
  uint64_t seed = firstSeed();
  RecordProperty("first_seed", std::to_string(seed));
  const int ranks = setting("RANKS", 0);
  const std::vector<int> sizes =
      ranks == 0 ? std::vector<int>{1, 2, 3, 4, 7} : std::vector<int>{ranks};
  do {
    for (const int size : sizes) {
      soak(GetParam(), size, seed, setting("STEPS", 100));
    }
    seed++;
  } while (now() < until && !HasFailure());
}

TEST_P(SoakTest, SeveralThreadsOnOneContext) {
  const char* only = std::getenv("GLOO_TEST_TRANSPORT");
  const int steps = setting("STEPS", 40);
  const auto until = now() + soakTime() / 2;
  uint64_t seed = firstSeed();
  RecordProperty("first_seed", std::to_string(seed));
  do {
    for (const TestTransport& transport : transports()) {
      const std::string& name = transport.name;
      if (only != nullptr ? name == only
                          : name == "tcp" || name == "tcp_lazy" ||
                                name == "shm" || name == "auto") {
        soakThreads(GetParam(), transport, 2, seed, steps);
        soakThreads(GetParam(), transport, 4, seed, steps);
      }
    }
    seed++;
  } while (now() < until && !HasFailure());
}

INSTANTIATE_TEST_SUITE_P(, SoakTest,
                         ::testing::Values(Mode::kThreads, Mode::kProcesses),
                         [](const auto& info) { return name(info.param); });

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
