// Random operations on random sizes against an oracle. All ranks derive the
// same plan from the seed, so no talk is needed beside the operations. A short
// run always; GLOO_SOAK_SECONDS makes it longer.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <thread>

#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/broadcast.h"
#include "gloo/common/string.h"
#include "gloo/math.h"
#include "tests/multiprocess/job.h"
#include "tests/support/collectives.h"
#include "tests/support/transports.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using std::chrono::seconds;

// GLOO_SOAK_<name>: how many elements at most, operations, ranks.
int setting(const char* name, int otherwise) {
  const char* text = std::getenv(MakeString("GLOO_SOAK_", name).c_str());
  return text != nullptr ? std::atoi(text) : otherwise;
}

// What rank r contributes at element i of operation `op`.
uint64_t input(uint64_t op, int rank, uint64_t i) {
  return (op * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(rank) * 1000003u +
          i * 0xff51afd7ed558ccdu) ^
         (i >> 3);
}

// The same on all ranks: one step of the plan.
struct Step {
  uint64_t number;
  uint64_t random;
  size_t elements;

  Step(uint64_t number, std::mt19937_64& generator)
      : number(number), random(generator()) {
    const uint64_t size = generator();
    // mostly short, sometimes around the limits of segments
    elements = random % 11 == 0  ? size % 700000
               : random % 3 == 0 ? size % 20000
                                 : size % 100;
    static const auto most = static_cast<size_t>(setting("MOST", 700000));
    elements = std::min(elements, most);
  }
  int root(int size) const {
    return static_cast<int>((random >> 20) % static_cast<uint64_t>(size));
  }
};

std::vector<uint64_t> inputs(const Step& step, int rank) {
  std::vector<uint64_t> values(step.elements);
  for (size_t i = 0; i < values.size(); i++) {
    values[i] = input(step.number, rank, i);
  }
  return values;
}

// Checks a sample, and the ends.
template <typename Expected>
void check(const Step& step, const std::vector<uint64_t>& got,
           const Expected& expected) {
  const size_t stride = std::max<size_t>(1, got.size() / 997);
  for (size_t i = 0; i < got.size(); i += stride) {
    ASSERT_EQ(got[i], expected(i))
        << "operation " << step.number << " at " << i << " of " << got.size();
  }
  if (!got.empty()) {
    ASSERT_EQ(got.back(), expected(got.size() - 1)) << step.number;
  }
}

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

// Bound buffers to the right neighbour, and notes to the left one that they may
// be written again.
class BoundRing {
 public:
  // All ranks make that of a stream before its first step.
  BoundRing(const std::shared_ptr<Context>& context, uint64_t stream)
      : rank_(context->rank), size_(context->size) {
    if (size_ == 1) {
      return;
    }
    const int slot = static_cast<int>(1000 + 2 * stream);
    auto& left = context->getPair((rank_ + size_ - 1) % size_);
    auto& right = context->getPair((rank_ + 1) % size_);
    in_ = left->createRecvBuffer(slot, got_.data(), 8 * kMost);
    out_ = right->createSendBuffer(slot, sent_.data(), 8 * kMost);
    noteIn_ = right->createRecvBuffer(slot + 1, &heard_, sizeof(heard_));
    noteOut_ = left->createSendBuffer(slot + 1, &said_, sizeof(said_));
  }

  // In some pieces.
  void shift(const Step& step) {
    if (size_ == 1) {
      return;
    }
    const int source = (rank_ + size_ - 1) % size_;
    const size_t elements = std::min(step.elements, kMost);
    const size_t pieces = 1 + step.random % 4;
    const size_t piece = elements / pieces;
    for (size_t i = 0; i < elements; i++) {
      sent_[i] = input(step.number, rank_, i);
    }
    for (size_t i = 0; i < pieces; i++) {
      const size_t begin = 8 * i * piece;
      const size_t end = i + 1 < pieces ? begin + 8 * piece : 8 * elements;
      out_->send(begin, end - begin, begin);
    }
    for (size_t i = 0; i < pieces; i++) {
      in_->waitRecv();
    }
    check(step, {got_.begin(), got_.begin() + static_cast<long>(elements)},
          [&](size_t i) { return input(step.number, source, i); });
    said_ = step.number;
    noteOut_->send();
    noteIn_->waitRecv();
    EXPECT_EQ(heard_, step.number);
    noteOut_->waitSend();
    for (size_t i = 0; i < pieces; i++) {
      out_->waitSend();
    }
  }

 private:
  static constexpr size_t kMost = 20000;

  const int rank_;
  const int size_;
  uint64_t said_ = 0;
  uint64_t heard_ = 0;
  std::vector<uint64_t> sent_ = std::vector<uint64_t>(kMost);
  std::vector<uint64_t> got_ = std::vector<uint64_t>(kMost);
  std::unique_ptr<transport::Buffer> in_;
  std::unique_ptr<transport::Buffer> out_;
  std::unique_ptr<transport::Buffer> noteIn_;
  std::unique_ptr<transport::Buffer> noteOut_;
};

// Any collective, roots and places as they come.
void doAny(const std::shared_ptr<Context>& context, const Step& step) {
  testing_support::Call call;
  call.count = step.elements / static_cast<size_t>(context->size);
  call.root = step.root(context->size);
  call.inPlace = (step.random >> 40) % 2 == 0;
  call.tag = static_cast<uint32_t>(step.number);
  call.seed = static_cast<unsigned>(step.number % 1000);
  const size_t which = (step.random >> 42) % testing_support::kChecks;
  ASSERT_EQ("",
            (step.random >> 41) % 2 == 0
                ? testing_support::checkCollective<float>(which, context, call)
                : testing_support::checkCollective<testing_support::Triple>(
                      which, context, call))
      << "operation " << step.number;
}

void perform(const std::shared_ptr<Context>& context, BoundRing& bound,
             const Step& step) {
  switch ((step.random >> 50) % 13) {
    case 0:
      doAllreduce(context, step);
      break;
    case 1:
      doBroadcast(context, step);
      break;
    case 2: {
      BarrierOptions options(context);
      options.setTag(static_cast<uint32_t>(step.number));
      barrier(options);
      break;
    }
    case 3:
    case 4:
      doShift(context, step);
      break;
    case 5:
      doGatherAny(context, step);
      break;
    case 6:
    case 7:
      bound.shift(step);
      break;
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
                  BoundRing bound(context, 0);
                  for (int i = 0; i < steps; i++) {
                    perform(context, bound,
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
            BoundRing bound(context, stream);
            for (int step = 0; step < steps; step++) {
              perform(context, bound,
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
  const auto until = now() + soakTime() / 2;
  uint64_t seed = firstSeed();
  RecordProperty("first_seed", std::to_string(seed));
  do {
    for (const TestTransport& transport : transports()) {
      if (transport.name == "tcp" || transport.name == "shm" ||
          transport.name == "auto") {
        soakThreads(GetParam(), transport, 2, seed, 40);
        soakThreads(GetParam(), transport, 4, seed, 40);
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
