// Contexts on the real transport.
#include "gloo/rendezvous/context.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "gloo/barrier.h"
#include "gloo/common/error.h"
#include "gloo/internal/profile.h"
#include "gloo/rendezvous/hash_store.h"
#include "gloo/rendezvous/prefix_store.h"
#include "gloo/transport/tcp/device.h"
#include "rendezvous/exchange.h"
#include "rendezvous/record.h"
#include "tests/rendezvous/store_kinds.h"
#include "tests/rendezvous/temporary_directory.h"

namespace gloo_test {

namespace {

using gloo::Deadline;
using std::chrono::seconds;

// body(context, device) on every rank of a connected context.
void onRanks(int size, const std::function<void(
                           const std::shared_ptr<gloo::rendezvous::Context>&,
                           std::shared_ptr<gloo::transport::Device>&)>& body) {
  auto store = std::make_shared<gloo::rendezvous::HashStore>();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; rank++) {
    threads.emplace_back([&, rank] {
      auto device = gloo::transport::tcp::CreateDevice("localhost");
      auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
      try {
        context->connectFullMesh(store, device);
        body(context, device);
      } catch (const gloo::Exception& error) {
        ADD_FAILURE() << error.what();
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

void sendAround(gloo::Context& context) {
  int value = context.rank;
  int got = -1;
  const int next = (context.rank + 1) % context.size;
  const int previous = (context.rank + context.size - 1) % context.size;
  auto out = context.createUnboundBuffer(&value, sizeof value);
  auto in = context.createUnboundBuffer(&got, sizeof got);
  in->recv(previous, 7);
  out->send(next, 7);
  EXPECT_TRUE(out->waitSend());
  EXPECT_TRUE(in->waitRecv());
  EXPECT_EQ(got, previous);
}

TEST(RendezvousContextTest, ValuesOfAnyLengthAreExchanged) {
  for (const int size : {2, 3, 5}) {
    onRanks(size, [](const auto& context, auto& /*device*/) {
      const std::vector<char> mine(static_cast<size_t>(context->rank) * 1000,
                                   static_cast<char>('a' + context->rank));
      const auto all = gloo::rendezvous::exchangeAll(
          *context, mine, Deadline::after(seconds(20)));
      for (int rank = 0; rank < context->size; rank++) {
        EXPECT_EQ(all[rank], std::vector<char>(static_cast<size_t>(rank) * 1000,
                                               static_cast<char>('a' + rank)));
      }
    });
  }
}

TEST(RendezvousContextTest, AFactoryMakesFurtherContextsWithoutAStore) {
  onRanks(3, [](const auto& context, auto& device) {
    gloo::rendezvous::ContextFactory factory(context);
    const auto second = factory.makeContext(device);
    EXPECT_EQ(second->rank, context->rank);
    EXPECT_EQ(second->size, context->size);
    const auto third = factory.makeContext(device);
    sendAround(*second);
    sendAround(*third);
    sendAround(*context);
  });
}

TEST(RendezvousContextTest, ConnectedAgainItIsAsNew) {
  const auto store = std::make_shared<gloo::rendezvous::HashStore>();
  onRanks(3, [&](const auto& context, auto& device) {
    for (const char* prefix : {"second", "third"}) {
      gloo::barrier(gloo::BarrierOptions(context));
      auto old = context->createUnboundBuffer(nullptr, 0);
      context->connectFullMesh(
          std::make_shared<gloo::rendezvous::PrefixStore>(prefix, store),
          device);
      old.reset();
      gloo::barrier(gloo::BarrierOptions(context));
      sendAround(*context);
    }
    EXPECT_EQ(context.use_count(), 1);
  });
}

TEST(RendezvousContextTest, OnlyTheContextsHoldTheDevice) {
  onRanks(2, [](const auto& context, auto& device) {
    EXPECT_EQ(device.use_count(), 3);
    sendAround(*context);
  });
}

TEST(RendezvousContextTest, ABorrowedStoreWorksToo) {
  gloo::rendezvous::HashStore store;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; rank++) {
    threads.emplace_back([&, rank] {
      auto device = gloo::transport::tcp::CreateDevice("localhost");
      gloo::rendezvous::Context context(rank, 2);
      ASSERT_NO_THROW(context.connectFullMesh(store, device));
      sendAround(context);
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

TEST(ContextTest, AnAbsurdSizeIsRefusedBeforeAnythingIsMadeForIt) {
  auto device = gloo::transport::tcp::CreateDevice("localhost");
  auto store = std::make_shared<gloo::rendezvous::HashStore>();
  gloo::rendezvous::Context context(0, 100000000);
  try {
    context.connectFullMesh(store, device);
    ADD_FAILURE() << "connected";
  } catch (const gloo::InvalidOperationException& error) {
    EXPECT_NE(std::string(error.what()).find("at most"), std::string::npos)
        << error.what();
  }
}

TEST(ProfileTest, ATuningFileThatNeverEndsIsRefused) {
  for (const char* path : {"/dev/zero", "/", "/no/such/file"}) {
    ::setenv("GLOO_TUNING_FILE", path, 1);
    try {
      gloo::internal::Profile::fromEnvironment();
      ADD_FAILURE() << path << " was read";
    } catch (const gloo::InvalidOperationException& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("GLOO_TUNING_FILE"), std::string::npos) << text;
      EXPECT_NE(text.find(path), std::string::npos) << text;
    }
  }
  ::unsetenv("GLOO_TUNING_FILE");
}

TEST(ProfileTest, AnEmptyTuningFileIsRefused) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/tuning.json";
  std::ofstream(path) << "";
  ::setenv("GLOO_TUNING_FILE", path.c_str(), 1);
  try {
    gloo::internal::Profile::fromEnvironment();
    ADD_FAILURE() << "it was read";
  } catch (const gloo::InvalidOperationException& error) {
    EXPECT_NE(std::string(error.what()).find(path + " is empty"),
              std::string::npos)
        << error.what();
  }
  ::unsetenv("GLOO_TUNING_FILE");
}

// What is read can be published: no file is too long for that alone.
TEST(ProfileTest, TheLongestTuningFileFitsIntoAProfile) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/tuning.json";
  ::setenv("GLOO_TUNING_FILE", path.c_str(), 1);
  ::setenv("GLOO_ALGORITHM", "allreduce=ring,reduce_scatterv=ring", 1);
  size_t longest = size_t{62} << 10;
  for (size_t bytes = longest; bytes <= size_t{65} << 10; bytes += 64) {
    std::ofstream(path) << std::string(bytes, ' ');
    try {
      const auto profile = gloo::internal::Profile::fromEnvironment();
      EXPECT_LE(profile.serialize().size(),
                gloo::rendezvous::Record::kMaxExtraBytes);
      longest = bytes;
    } catch (const gloo::InvalidOperationException&) {
      break;
    }
  }
  EXPECT_EQ(size_t{63} << 10, longest);
  ::unsetenv("GLOO_ALGORITHM");
  ::unsetenv("GLOO_TUNING_FILE");
}

}  // namespace

}  // namespace gloo_test
