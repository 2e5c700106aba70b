// Where a rank knows only its own counts, sender and receiver of a part may
// disagree about it: also by a whole multiple, where both may cut their parts
// into messages of the same length. All ranks are told, and with both counts.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <thread>

#include "gloo/alltoallv.h"
#include "gloo/context.h"
#include "gloo/gatherv.h"
#include "gloo/pairwise_exchange.h"
#include "tests/algorithms/mismatch_told.h"
#include "tests/support/process_group.h"
#include "tests/support/transports.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using ContextPtr = std::shared_ptr<Context>;

// From rank 0 to rank 1 (of elements), and what rank 1 expects.
struct Part {
  size_t sent;
  size_t expected;
};
using Call = std::function<void(const ContextPtr&, const Part&)>;

template <typename T>
void exchange(const ContextPtr& context, const Part& part) {
  std::vector<int64_t> in(static_cast<size_t>(context->size), 1);
  std::vector<int64_t> out = in;
  if (context->rank == 0) {
    in[1] = static_cast<int64_t>(part.sent);
  } else if (context->rank == 1) {
    out[0] = static_cast<int64_t>(part.expected);
  }
  const auto all = [](const std::vector<int64_t>& counts) {
    size_t sum = 0;
    for (const int64_t count : counts) {
      sum += static_cast<size_t>(count);
    }
    return std::vector<T>(sum);
  };
  auto input = all(in);
  auto output = all(out);
  AlltoallvOptions opts(context);
  opts.setInput(input.data(), in);
  opts.setOutput(output.data(), out);
  alltoallv(opts);
}

template <typename T>
void gather(const ContextPtr& context, const Part& part) {
  std::vector<T> input(context->rank == 0 ? part.sent : 1);
  std::vector<size_t> counts(static_cast<size_t>(context->size), 1);
  counts[0] = part.expected;
  std::vector<T> output(part.expected + counts.size() - 1);
  GathervOptions opts(context);
  opts.setInput(input.data(), input.size());
  if (context->rank == 1) {
    opts.setOutput(output.data(), counts);
  }
  opts.setRoot(1);
  gatherv(opts);
}

void exchangePairwise(const ContextPtr& context, const Part& part) {
  PairwiseExchange object(
      context, static_cast<int>(context->rank == 0 ? part.sent : part.expected),
      1);
  object.run();
}

class MismatchedParts : public ::testing::TestWithParam<std::string> {
 protected:
  static void expectNamed(const Call& call, int ranks, const Part& part) {
    for (const TestTransport& transport : transports()) {
      if (transport.name == GetParam()) {
        spawnContexts(Mode::kThreads, transport.make, ranks,
                      [&](const ContextPtr& context) {
                        SCOPED_TRACE(MakeString(part.sent, " sent, ",
                                                part.expected, " expected"));
                        expectNamedBy(context, call, part);
                      });
      }
    }
  }

  static void expectNamedBy(const ContextPtr& context, const Call& call,
                            const Part& part) {
    const std::string text =
        mismatchTold(context, [&] { call(context, part); });
    const auto expectPart = [&](const std::string& what) {
      EXPECT_NE(std::string::npos, text.find(what)) << what << ": " << text;
    };
    expectPart("number of elements from rank ");
    expectPart(MakeString(part.sent, " on rank 0"));
    expectPart(MakeString(part.expected, " on rank 1"));
  }

  template <typename T>
  static void expectAll(size_t some) {
    for (const Part& part :
         {Part{2 * some, some}, Part{some, 2 * some}, Part{3 * some, some},
          Part{some, 3 * some}, Part{some + some / 2 + 1, some}}) {
      expectNamed(exchange<T>, 3, part);
      expectNamed(gather<T>, 3, part);
    }
  }
};

// Cut into messages of one length, over every transport: 175000 bytes over TCP,
// 700000 in shared memory.
TEST_P(MismatchedParts, OfSeveralMessages) { expectAll<int32_t>(175000); }

// Of counts that words have a hash of.
TEST_P(MismatchedParts, OfMoreThanAWordHolds) { expectAll<char>(700000); }

TEST_P(MismatchedParts, OfAMessage) { expectAll<int64_t>(5); }

TEST_P(MismatchedParts, NoneWhereSomeAreSent) {
  for (const size_t some : {size_t{5}, size_t{700000}}) {
    expectNamed(exchange<char>, 3, {some, 0});
    expectNamed(gather<char>, 3, {some, 0});
  }
}

// Who waits tells what for, after a quarter of a second.
TEST_P(MismatchedParts, SomeWhereNoneAreSent) {
  expectNamed(exchange<char>, 3, {0, 5});
  expectNamed(gather<char>, 3, {0, 5});
}

TEST_P(MismatchedParts, OfObjects) {
  expectNamed(exchangePairwise, 2, {1400000, 700000});
  expectNamed(exchangePairwise, 2, {700000, 1400000});
  expectNamed(exchangePairwise, 2, {4, 12});
}

// Many messages, and a last one that is shorter.
TEST_P(MismatchedParts, InShortSegments) {
  ASSERT_EQ(0, setenv("GLOO_SEGMENT_BYTES", "4096", 1));
  expectAll<int32_t>(1000);
  unsetenv("GLOO_SEGMENT_BYTES");
}

// Who comes late finds what the others have said of it.
TEST_P(MismatchedParts, OfARankThatComesLate) {
  const Call late = [](const ContextPtr& context, const Part& part) {
    if (context->rank == 1) {
      const auto since = now();
      while (now() - since < std::chrono::milliseconds(20)) {
        context->createUnboundBuffer(nullptr, 0);
        std::this_thread::yield();
      }
    }
    exchange<char>(context, part);
  };
  expectNamed(late, 3, {5, 0});
  expectNamed(late, 3, {10, 5});
}

INSTANTIATE_TEST_SUITE_P(, MismatchedParts,
                         ::testing::Values("tcp", "tcp_lazy", "shm", "auto"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
