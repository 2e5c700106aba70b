// Memory that is made and mapped for all ranks. Meanwhile, tens of milliseconds
// of a long one, the operations of other threads go on; and what is handed over
// twice leaves nothing behind.
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>

#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/common/error.h"
#include "gloo/context.h"
#include "gloo/transport/shm/allocate.h"
#include "tests/support/collectives.h"
#include "tests/support/process_group.h"
#include "tests/support/spawn.h"
#include "transport/base/device.h"
#include "transport/shm/factory.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

namespace base = transport::base;
using transport::shm::ShmFactory;

// Of each kind of call, how many were seen.
struct Calls {
  std::atomic<int> given{0};
  std::atomic<int> taken{0};
  std::atomic<int> lent{0};
  std::atomic<int> borrowed{0};
  std::atomic<int> failures{0};  // of borrowing, that are still to come
};

// Looks, at each call, whether another thread gets the domain's lock.
class WatchedSharer final : public base::MemorySharer {
 public:
  WatchedSharer(base::ProgressDomain& domain, base::MemorySharer& real,
                Calls& calls)
      : domain_(domain), real_(real), calls_(calls) {}

  Name name() const override { return real_.name(); }
  Name makeToken() override { return real_.makeToken(); }
  std::shared_ptr<base::SharedMemory> give(const std::vector<Plan>& plans,
                                           const std::vector<Taker>& takers,
                                           size_t* chosen) override {
    look(calls_.given);
    return real_.give(plans, takers, chosen);
  }
  std::shared_ptr<base::SharedMemory> take(size_t bytes,
                                           const Name& token) override {
    look(calls_.taken);
    return real_.take(bytes, token);
  }
  void refuse(const Name& token) noexcept override { real_.refuse(token); }
  void lend(const base::SharedAllocation& allocation,
            const std::vector<Taker>& takers) override {
    look(calls_.lent);
    real_.lend(allocation, takers);
  }
  std::shared_ptr<const base::SharedAllocation> borrow(
      uint64_t id, const Name& token) override {
    look(calls_.borrowed);
    if (calls_.failures.fetch_sub(1) > 0) {
      throw IoException("no descriptor is left");
    }
    return real_.borrow(id, token);
  }
  void refuseLoan(uint64_t id, const Name& token) noexcept override {
    real_.refuseLoan(id, token);
  }
  void refuseLoans(const Name& token) noexcept override {
    real_.refuseLoans(token);
  }

 private:
  void look(std::atomic<int>& count) {
    count++;
    auto had = std::make_shared<std::promise<void>>();
    std::thread other([this, had] {
      const auto lock = domain_.lock();
      had->set_value();
    });
    const bool free =
        had->get_future().wait_for(std::chrono::seconds(5) * patience()) ==
        std::future_status::ready;
    EXPECT_TRUE(free) << "the domain's lock is held";
    free ? other.join() : other.detach();  // it has it later
  }

  base::ProgressDomain& domain_;
  base::MemorySharer& real_;
  Calls& calls_;
};

class WatchedFactory final : public base::LinkFactory {
 public:
  WatchedFactory(base::ProgressDomain& domain, Calls& calls)
      : real_(domain, {}), sharer_(domain, *real_.sharer(), calls) {}

  std::string kind() const override { return real_.kind(); }
  base::LinkCaps caps(int peers) const override { return real_.caps(peers); }
  std::unique_ptr<base::PendingLink> prepare(int peers) override {
    return real_.prepare(peers);
  }
  std::unique_ptr<base::PendingLink> answer(
      int peers, const base::Hello& theirs) override {
    return real_.answer(peers, theirs);
  }
  bool mayShare() const override { return true; }
  base::MemorySharer* sharer() override { return &sharer_; }
  void addStatistics(internal::Statistics& total) const override {
    real_.addStatistics(total);
  }

 private:
  ShmFactory real_;
  WatchedSharer sharer_;
};

constexpr int kRanks = 3;
constexpr size_t kCount = 20000;

void spawnWatched(Calls& calls,
                  const std::function<void(std::shared_ptr<Context>)>& run) {
  const auto makeDevice = [&] {
    sockaddr_in loopback{};
    loopback.sin_family = AF_INET;
    loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    base::DeviceInfo info;
    info.name = "shm";
    return std::make_shared<base::Device>(
        std::move(info),
        base::SocketAddress(reinterpret_cast<const sockaddr*>(&loopback),
                            sizeof(loopback)),
        [&](base::ProgressDomain& domain, base::DeviceInfo&) {
          return std::make_unique<WatchedFactory>(domain, calls);
        });
  };
  spawnContexts(Mode::kThreads, makeDevice, kRanks, run);
}

void allreduceIn(const transport::shm::Memory& memory,
                 const std::shared_ptr<Context>& context) {
  AllreduceOptions opts(context);
  opts.setOutput(static_cast<int*>(memory.data()), kCount);
  opts.setReduceFunction(testing_support::adder<int>());
  allreduce(opts);
}

TEST(UnlockedSharingTest, OthersHaveTheLockMeanwhile) {
  Calls calls;
  spawnWatched(calls, [](const std::shared_ptr<Context>& context) {
    allreduceIn(transport::shm::allocate(kCount * sizeof(int)), context);
  });
  EXPECT_EQ(calls.given, 1);
  EXPECT_EQ(calls.taken, kRanks - 1);
  EXPECT_EQ(calls.lent, kRanks);
  EXPECT_EQ(calls.borrowed, kRanks * (kRanks - 1));
}

ptrdiff_t openDescriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator());
}

// Open when each rank has used its memory twice, of which the first time so
// many could not have another's.
ptrdiff_t descriptorsAfter(int failures) {
  Calls calls;
  calls.failures = failures;
  std::atomic<ptrdiff_t> open{0};
  spawnWatched(calls, [&](const std::shared_ptr<Context>& context) {
    const auto memory = transport::shm::allocate(kCount * sizeof(int));
    allreduceIn(memory, context);
    allreduceIn(memory, context);
    BarrierOptions all(context);
    barrier(all);
    if (context->rank == 0) {
      open = openDescriptors();
    }
    barrier(all);
  });
  EXPECT_EQ(calls.borrowed, kRanks * (kRanks - 1) + failures);
  return open;
}

TEST(UnlockedSharingTest, WhatIsHandedOverAgainIsNotKept) {
  const ptrdiff_t usual = descriptorsAfter(0);
  EXPECT_EQ(descriptorsAfter(1), usual);
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
