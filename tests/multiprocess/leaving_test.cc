// Ranks that have finished leave while others still work: nobody sees an error.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "gloo/common/string.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/rendezvous/prefix_store.h"
#include "tests/multiprocess/job.h"
#include "tests/support/transports.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

enum class End { kDestroy, kExit };

void runOnce(uint64_t seed, End end) {
  SCOPED_TRACE(MakeString("seed ", seed));
  std::mt19937_64 random(seed);
  const int first = static_cast<int>(random() % 3);
  const size_t bytes = random() % 4 == 0 ? 100000 : 64;
  Job job(Job::Options{},
          [&](Child& child, const std::shared_ptr<Context>& context) {
            lastOperations(*context, first, bytes);
            if (end == End::kExit) {
              // The context is never destroyed.
              static std::shared_ptr<Context> kept;
              kept = context;
              child.say("0 0 none");
              std::exit(::testing::Test::HasFailure() ? 1 : 0);
            }
          });
  job.go();
  for (int rank = 0; rank < 3; rank++) {
    const Failure failure = job.failure(rank, std::chrono::seconds(20));
    EXPECT_EQ(failure.type, "none") << "rank " << rank << failure.text;
  }
  job.group().joinAll(std::chrono::seconds(20));
}

class LeavingTest : public ::testing::TestWithParam<int> {};

// In a guest ten, which take twenty seconds there.
int runs() { return patience() > slowness() ? 10 : 125; }

TEST_P(LeavingTest, AfterDestroyingTheContext) {
  for (int i = 0; i < runs() && !HasFailure(); i++) {
    runOnce(static_cast<uint64_t>(GetParam() * runs() + i), End::kDestroy);
  }
}

TEST_P(LeavingTest, ByExitWithoutDestroyingIt) {
  for (int i = 0; i < runs() && !HasFailure(); i++) {
    runOnce(static_cast<uint64_t>(GetParam() * runs() + i), End::kExit);
  }
}

// 1000 runs in all, or fewer.
INSTANTIATE_TEST_SUITE_P(, LeavingTest, ::testing::Range(0, 4));

// What the parent would do at its exit is nothing of theirs.
TEST(LeavingChildrenTest, WhereTheirParentHasHadAContext) {
  chosenTransport().make()->createContext(0, 2);
  for (uint64_t seed = 0; seed < 3; seed++) {
    runOnce(seed, End::kExit);
  }
}

// Contexts of two processes; they are kept until the process has ended.
class LeavingByExitTest : public ::testing::Test {
 protected:
  using Contexts = std::vector<std::shared_ptr<rendezvous::Context>>;

  Contexts& connect(int rank, int contexts) {
    static Contexts& all = *new Contexts;
    auto device = chosenTransport().make();
    const auto store =
        std::make_shared<rendezvous::FileStore>(directory_.path());
    for (int i = 0; i < contexts; i++) {
      all.push_back(std::make_shared<rendezvous::Context>(rank, 2));
      all.back()->setTimeout(std::chrono::seconds(30));
      all.back()->connectFullMesh(
          std::make_shared<rendezvous::PrefixStore>(std::to_string(i), store),
          device);
    }
    return all;
  }

  const ScratchDirectory directory_;
};

TEST_F(LeavingByExitTest, WhileAnotherThreadDestroysTheContext) {
  constexpr size_t kBytes = 8 << 20;
  ProcessGroup group(2, [&](Child& child) {
    Contexts& contexts = connect(child.rank, 1);
    if (child.rank == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(400));
      recvFrom(*contexts[0], 0, 1, kBytes);
      return;
    }
    static auto& memory = *new std::vector<char>(kBytes);
    static transport::UnboundBuffer* const buffer =
        contexts[0]->createUnboundBuffer(memory.data(), kBytes).release();
    buffer->send(1, 1);
    std::thread([&contexts] { contexts.clear(); }).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::exit(0);
  });
  group.joinAll(std::chrono::seconds(30));
}

// They are waited for at the same time.
TEST_F(LeavingByExitTest, WithManyContextsWhileAPeerIsStopped) {
  constexpr int kContexts = 6;
  ProcessGroup group(2, [&](Child& child) {
    connect(child.rank, kContexts);
    child.say("connected");
    child.hear();
    std::exit(0);
  });
  group.expectAll("connected");
  group.signal(1, SIGSTOP);
  const auto began = now();
  group.tell(0, "go");
  EXPECT_TRUE(group.join(0, std::chrono::seconds(30)).exitedWith(0));
  // One of them takes 2 s.
  EXPECT_LT(now() - began,
            std::chrono::seconds(2 * kContexts - 2) * slowness());
  group.signal(1, SIGKILL);
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
