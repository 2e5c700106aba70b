// What becomes of vectors of the shared allocator when an operation on them
// fails: nobody writes there afterwards, and they are copied only where that
// needs a copy.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <barrier>
#include <csignal>
#include <functional>
#include <stdexcept>
#include <vector>

#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/common/error.h"
#include "gloo/context.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/transport/auto/device.h"
#include "gloo/transport/shm/allocate.h"
#include "gloo/transport/shm/device.h"
#include "tests/algorithms/lanes.h"
#include "tests/support/collectives.h"
#include "tests/support/spawn.h"
#include "transport/base/shared_allocations.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using ContextPtr = std::shared_ptr<Context>;

constexpr size_t kCount = 3 << 20;  // several looks at a failure

class SharedVector {
 public:
  // With a page behind it.
  SharedVector()
      : memory_(transport::shm::allocate((kCount + 1024) * sizeof(int))) {
    std::fill(begin(), begin() + kCount, 1);
  }
  int* begin() { return static_cast<int*>(memory_.data()); }
  // Others still have it mapped as this rank has.
  bool isShared() {
    return transport::base::SharedAllocations::instance()
               .find(reinterpret_cast<uintptr_t>(memory_.data()))
               .id != 0;
  }
  // The byte that is so far from the end.
  void withdraw(int fromEnd) {
    auto& allocations = transport::base::SharedAllocations::instance();
    const auto begin = reinterpret_cast<uintptr_t>(memory_.data());
    allocations.withdraw(allocations.find(begin).id,
                         kCount * sizeof(int) + fromEnd, 1);
  }

 private:
  transport::shm::Memory memory_;
};

// At the third block of that rank, `harm`.
void allreduceWith(const ContextPtr& context, SharedVector& vector, int victim,
                   const std::function<void()>& harm) {
  AllreduceOptions opts(context);
  opts.setOutput(vector.begin(), kCount);
  int calls = 0;
  opts.setReduceFunction([&](void* c, const void* a, const void* b, size_t n) {
    if (context->rank == victim && ++calls == 3) {
      harm();
    }
    sum<int>(c, a, b, n);
  });
  allreduce(opts);
}

TEST(WithdrawalTest, NothingIsCopiedWhereAllHaveStopped) {
  spawnContexts(
      Mode::kThreads, [] { return transport::shm::CreateDevice(); }, 3,
      [](const ContextPtr& context) {
        SharedVector vector;
        allreduceWith(context, vector, -1, [] {});
        EXPECT_TRUE(vector.isShared());
        EXPECT_ANY_THROW(allreduceWith(
            context, vector, 1, [] { throw std::runtime_error("no more"); }));
        EXPECT_TRUE(vector.isShared());
      });
}

// What another rank writes into a page is not seen once that has become a copy,
// as the end of an operation of another context asked for.
TEST(WithdrawalTest, AResultInAPageThatWasWithdrawnIsAnError) {
  for (const bool neighbour : {true, false}) {
    spawnContexts(
        Mode::kThreads, [] { return transport::shm::CreateDevice(); }, 2,
        [neighbour](const ContextPtr& context) {
          SharedVector vector;
          allreduceWith(context, vector, -1, [] {});
          std::string error;
          try {
            allreduceWith(context, vector, 0,
                          [&] { vector.withdraw(neighbour ? -1 : 0); });
          } catch (const IoException& e) {
            error = e.what();
          }
          if (context->rank == 0) {
            EXPECT_EQ(error.find("shares a page") != std::string::npos,
                      neighbour)
                << error;
          }
        });
  }
}

// What was read meanwhile does not count, for any rank.
TEST(WithdrawalTest, AllRanksSeeThatOneHasLetGo) {
  std::barrier<> all(3);
  spawnContexts(
      Mode::kThreads, [] { return transport::shm::CreateDevice(); }, 3,
      [&](const ContextPtr& context) {
        internal::Lane& lane = laneOf(context, kBarrierSlotPrefix, 7);
        EXPECT_FALSE(lane.hasLetGo());
        all.arrive_and_wait();
        if (context->rank == 1) {
          lane.letGo();
        }
        all.arrive_and_wait();
        EXPECT_TRUE(lane.hasLetGo());
      });
}

// A rank alone: exits with 0 if it has seen what it should.
int survive(std::shared_ptr<transport::Device> device, int rank,
            const std::string& path) {
  auto context = std::make_shared<rendezvous::Context>(rank, 3);
  context->setTimeout(contextTimeout());
  auto store = std::make_shared<rendezvous::FileStore>(path);
  context->connectFullMesh(store, device);
  SharedVector vector;
  allreduceWith(context, vector, -1, [] {});
  try {
    allreduceWith(context, vector, 1, [] { ::raise(SIGKILL); });
    return 1;
  } catch (const PeerLostException&) {
  }
  return vector.isShared() ? 0 : 2;
}

void checkKilled(
    const std::function<std::shared_ptr<transport::Device>()>& maker) {
  const ScratchDirectory directory;
  std::vector<pid_t> pids;
  for (int rank = 0; rank < 3; rank++) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      int status = 3;
      try {
        status = survive(maker(), rank, directory.path());
      } catch (const std::exception& e) {
        fprintf(stderr, "rank %d: %s\n", rank, e.what());
      }
      ::_exit(status);
    }
    pids.push_back(pid);
  }
  for (size_t rank = 0; rank < pids.size(); rank++) {
    int status = -1;
    ASSERT_EQ(::waitpid(pids[rank], &status, 0), pids[rank]);
    EXPECT_EQ(status, rank == 1 ? SIGKILL : 0) << "rank " << rank;
  }
}

TEST(WithdrawalTest, NothingIsCopiedWhenARankIsKilled) {
  checkKilled([] { return transport::shm::CreateDevice(); });
  checkKilled([] { return transport::CreateDevice(); });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
