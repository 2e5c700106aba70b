// Elements of types that the library does not know, of sizes that the same
// power of two holds: what differs is told, and so it is where all count alike.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <vector>

#include "gloo/allgather.h"
#include "gloo/alltoall.h"
#include "gloo/alltoallv.h"
#include "gloo/barrier.h"
#include "gloo/broadcast.h"
#include "gloo/context.h"
#include "gloo/gatherv.h"
#include "tests/algorithms/mismatch_told.h"
#include "tests/support/transports.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using ContextPtr = std::shared_ptr<Context>;

template <size_t kBytes>
using Element = std::array<char, kBytes>;

template <typename T>
void broadcastFrom(const ContextPtr& context, size_t count, int root) {
  std::vector<T> data(count);
  BroadcastOptions opts(context);
  opts.setOutput(data.data(), count);
  opts.setRoot(root);
  broadcast(opts);
}

template <typename T>
void callBroadcast(const ContextPtr& context, size_t count) {
  broadcastFrom<T>(context, count, 0);
}

template <typename T>
void callAllgather(const ContextPtr& context, size_t count) {
  std::vector<T> input(count);
  std::vector<T> output(count * static_cast<size_t>(context->size));
  AllgatherOptions opts(context);
  opts.setInput(input.data(), input.size());
  opts.setOutput(output.data(), output.size());
  allgather(opts);
}

template <typename T>
void callAlltoall(const ContextPtr& context, size_t count) {
  std::vector<T> input(count * static_cast<size_t>(context->size));
  std::vector<T> output(input.size());
  AlltoallOptions opts(context);
  opts.setInput(input.data(), input.size());
  opts.setOutput(output.data(), output.size());
  alltoall(opts);
}

template <typename T>
void callAlltoallv(const ContextPtr& context, size_t count) {
  const std::vector<int64_t> counts(static_cast<size_t>(context->size),
                                    static_cast<int64_t>(count));
  std::vector<T> input(count * counts.size());
  std::vector<T> output(input.size());
  AlltoallvOptions opts(context);
  opts.setInput(input.data(), counts);
  opts.setOutput(output.data(), counts);
  alltoallv(opts);
}

template <typename T>
void callGatherv(const ContextPtr& context, size_t count) {
  const std::vector<size_t> counts(static_cast<size_t>(context->size), count);
  std::vector<T> input(count);
  std::vector<T> output(count * counts.size());
  GathervOptions opts(context);
  opts.setInput(input.data(), input.size());
  if (context->rank == 0) {
    opts.setOutput(output.data(), counts);
  }
  opts.setRoot(0);
  gatherv(opts);
}

// Rank 1's call, or another's.
using Call = std::function<void(const ContextPtr&, bool isOdd)>;

class MismatchedSizes : public ::testing::TestWithParam<std::string> {
 protected:
  static void expectNamed(const Call& call, const std::string& what,
                          const std::string& field = "element size") {
    for (const TestTransport& transport : transports()) {
      if (transport.name == GetParam()) {
        spawnContexts(Mode::kThreads, transport.make, 2,
                      [&](const ContextPtr& context) {
                        SCOPED_TRACE(what);
                        expectNamedBy(context, call, field);
                      });
      }
    }
  }

  static void expectNamedBy(const ContextPtr& context, const Call& call,
                            const std::string& field) {
    const std::string text = mismatchTold(context, [&] {
      call(context, context->rank == 1);
      // Who sends only, in mapped memory, is told by the next one.
      barrier(BarrierOptions(context));
    });
    EXPECT_NE(std::string::npos, text.find(field)) << text;
  }

  template <typename Usual, typename Odd>
  static void expectAll() {
    for (const size_t count : {size_t{5}, size_t{100000}}) {
      const auto either = [count](auto usual, auto odd) {
        return [=](const ContextPtr& context, bool isOdd) {
          isOdd ? odd(context, count) : usual(context, count);
        };
      };
      const std::string some = MakeString(" of ", count, " elements");
      expectNamed(either(callBroadcast<Usual>, callBroadcast<Odd>),
                  "broadcast" + some);
      expectNamed(either(callAllgather<Usual>, callAllgather<Odd>),
                  "allgather" + some);
      expectNamed(either(callAlltoall<Usual>, callAlltoall<Odd>),
                  "alltoall" + some);
      expectNamed(either(callAlltoallv<Usual>, callAlltoallv<Odd>),
                  "alltoallv" + some);
      expectNamed(either(callGatherv<Usual>, callGatherv<Odd>),
                  "gatherv" + some);
    }
  }
};

TEST_P(MismatchedSizes, APowerOfTwoAndLess) {
  expectAll<Element<4>, Element<3>>();
  expectAll<Element<12>, Element<16>>();
}

TEST_P(MismatchedSizes, BothBetweenPowers) {
  expectAll<Element<5>, Element<7>>();
}

// What else the word has a hash of is not taken for what differs.
TEST_P(MismatchedSizes, RootsBesideWhatIsHashed) {
  const auto expectRoot = [](auto call, size_t count) {
    expectNamed([=](const ContextPtr& context,
                    bool isOdd) { call(context, count, isOdd ? 1 : 0); },
                MakeString(count, " elements"), "root: ");
  };
  expectRoot(broadcastFrom<Element<12>>, 5);
  expectRoot(broadcastFrom<Element<12>>, 100000);
  expectRoot(broadcastFrom<char>, size_t{1} << 20);
}

INSTANTIATE_TEST_SUITE_P(, MismatchedSizes,
                         ::testing::Values("tcp", "tcp_lazy", "shm", "auto"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
