#include "gloo/rendezvous/exchange_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gloo/barrier.h"
#include "gloo/common/deadline.h"
#include "gloo/common/error.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/prefix_store.h"
#include "gloo/transport/tcp/device.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using rendezvous::Context;
using rendezvous::ExchangeStore;
using rendezvous::PrefixStore;
using rendezvous::Store;
using Bytes = std::vector<char>;
using std::chrono::milliseconds;

// Of two threads.
class ExchangeStoreTest : public testing::Test {
 protected:
  static constexpr int kRanks = 2;

  std::vector<Bytes> allgather(int rank, const Bytes& mine) {
    calls_++;
    values_[static_cast<size_t>(rank)] = mine;
    both_.arrive_and_wait();
    return values_;
  }
  ExchangeStore::Exchange allgatherOf(int rank) {
    return [this, rank](const Bytes& mine) { return allgather(rank, mine); };
  }

  template <typename Body>
  static void onRanks(const Body& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; rank++) {
      threads.emplace_back([&body, rank] {
        try {
          body(rank);
        } catch (const std::exception& error) {
          ADD_FAILURE() << "rank " << rank << ": " << error.what();
        }
      });
    }
    for (auto& thread : threads) {
      thread.join();
    }
  }

  static std::shared_ptr<Context> contextOf(int rank, milliseconds timeout) {
    auto context = std::make_shared<Context>(rank, kRanks);
    context->setTimeout(timeout);
    return context;
  }

  static void connect(const std::shared_ptr<Context>& context,
                      const std::shared_ptr<Store>& store) {
    auto device = transport::tcp::CreateDevice("localhost");
    context->connectFullMesh(store, device);
  }

  static void meet(const std::shared_ptr<Context>& context) {
    BarrierOptions options(context);
    barrier(options);
  }

  // Alone, with this exchange. What that throws.
  template <typename Error>
  static std::string failureOf(ExchangeStore::Exchange exchange) {
    try {
      connect(contextOf(0, std::chrono::seconds(10)),
              std::make_shared<ExchangeStore>(std::move(exchange)));
    } catch (const Error& error) {
      return error.what();
    }
    return "no such error";
  }

  std::vector<Bytes> values_ = std::vector<Bytes>(kRanks);
  std::barrier<> both_{kRanks};
  std::atomic<int> calls_{0};
};

TEST_F(ExchangeStoreTest, TheTimeoutBeginsWhenAllAreThere) {
  onRanks([&](int rank) {
    constexpr milliseconds kTimeout{400};
    const auto context = contextOf(rank, kTimeout);
    connect(context, std::make_shared<ExchangeStore>([&](const Bytes& mine) {
              const Deadline late = Deadline::after(2 * kTimeout);
              while (rank == 1 && !late.expired()) {
                std::this_thread::sleep_until(late.at());
              }
              return allgather(rank, mine);
            }));
    context->setTimeout(std::chrono::seconds(30));
    meet(context);
  });
  EXPECT_EQ(calls_, kRanks);
}

TEST_F(ExchangeStoreTest, MayBeBehindAPrefix) {
  onRanks([&](int rank) {
    const auto context = contextOf(rank, std::chrono::seconds(30));
    const auto store = std::make_shared<PrefixStore>(
        "outer",
        std::make_shared<PrefixStore>(
            "inner", std::make_shared<ExchangeStore>(allgatherOf(rank))));
    EXPECT_TRUE(store->waits_for_all());
    connect(context, store);
    meet(context);
  });
}

TEST_F(ExchangeStoreTest, ConnectsOnce) {
  onRanks([&](int rank) {
    const auto context = contextOf(rank, std::chrono::seconds(30));
    const auto store = std::make_shared<ExchangeStore>(allgatherOf(rank));
    connect(context, store);
    EXPECT_THROW(connect(contextOf(rank, std::chrono::seconds(30)), store),
                 InvalidOperationException);
    meet(context);
  });
  EXPECT_EQ(calls_, kRanks);
}

TEST_F(ExchangeStoreTest, AnExchangeThatFailsIsNotRepeated) {
  int calls = 0;
  const std::string text =
      failureOf<RendezvousException>([&](const Bytes&) -> std::vector<Bytes> {
        calls++;
        throw std::runtime_error("no way to rank 1");
      });
  EXPECT_NE(text.find("no way to rank 1"), std::string::npos) << text;
  EXPECT_EQ(calls, 1);
}

TEST_F(ExchangeStoreTest, AStoreWhoseExchangeFailedSaysSo) {
  const auto store =
      std::make_shared<ExchangeStore>([](const Bytes&) -> std::vector<Bytes> {
        throw std::runtime_error("no way to rank 1");
      });
  const auto context = contextOf(0, std::chrono::seconds(10));
  EXPECT_THROW(connect(context, store), RendezvousException);
  try {
    connect(contextOf(0, std::chrono::seconds(10)), store);
    FAIL() << "no exception";
  } catch (const InvalidOperationException& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("no way to rank 1"), std::string::npos) << text;
    EXPECT_EQ(text.find("has connected"), std::string::npos) << text;
  }
}

TEST_F(ExchangeStoreTest, ValuesOfOtherThanAllRanksAreRefused) {
  const std::string text = failureOf<InvalidOperationException>(
      [](const Bytes& mine) { return std::vector<Bytes>{mine}; });
  EXPECT_NE(text.find("1 values for 2 ranks"), std::string::npos) << text;
}

TEST_F(ExchangeStoreTest, ValuesThatAreNoneOfTheirRanksAreRefused) {
  for (const bool twice : {false, true}) {
    const std::string text =
        failureOf<InvalidOperationException>([&](const Bytes& mine) {
          return std::vector<Bytes>{mine, twice ? mine : Bytes(10, 'x')};
        });
    EXPECT_NE(text.find("the value of rank 1"), std::string::npos) << text;
  }
}

TEST_F(ExchangeStoreTest, IsOfNoOtherUse) {
  EXPECT_THROW(ExchangeStore(nullptr), InvalidOperationException);
  ExchangeStore store(allgatherOf(0));
  EXPECT_THROW(store.set("key", Bytes(3)), InvalidOperationException);
  EXPECT_EQ(calls_, 0);
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
