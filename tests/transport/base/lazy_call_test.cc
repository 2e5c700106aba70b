// Calls for pairs that are connected at their first use, and what may come of
// them.
#include <gtest/gtest.h>

#include <arpa/inet.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gloo/internal/mesh.h"
#include "gloo/internal/profile.h"
#include "tests/support/fake_link.h"
#include "tests/transport/contract/contract.h"
#include "transport/base/connector.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace transport::base;  // NOLINT: everything here is about it
using std::chrono::milliseconds;

FakeOptions lazyOptions() {
  FakeOptions options;
  options.lazy = true;
  return options;
}

TEST(LazyCallTest, WhoIsPutOffCallsAgain) {
  const FakeOptions options = lazyOptions();
  options.watch->putOff = 3;
  spawn(Mode::kThreads, fakeDevices(options), 2, meet);
  EXPECT_LT(options.watch->putOff, 0);
}

// Of a receive from rank 1, or from any rank.
std::string complaintOfRecv(const ContextPtr& context,
                            const std::vector<int>& sources) {
  try {
    Message in(context, 8);
    in.buffer->recv(sources, 1);
    in.buffer->waitRecv();
  } catch (const IoException& e) {
    return e.what();
  }
  return "";
}

TEST(LazyCallTest, WhatCannotBePreparedFailsWhoWaits) {
  for (const auto& sources : {std::vector<int>{1}, std::vector<int>{1, 2}}) {
    const FakeOptions options = lazyOptions();
    spawnSeats(Mode::kThreads, 3, [&](Seat& seat) {
      auto context = fakeDevices(options)()->createContext(seat.rank, 3);
      context->setTimeout(contextTimeout());
      context->createAndConnectAllPairs(seat.store);
      seat.store->set(std::to_string(seat.rank), {1});
      seat.store->wait({"0", "1", "2"}, contextTimeout());
      if (seat.rank == 0) {
        options.watch->unprepared = 1;
        for (int i = 0; i < 2; i++) {
          const std::string why = complaintOfRecv(context, sources);
          EXPECT_NE(why.find("cannot make a link to rank 1: no link today"),
                    std::string::npos)
              << why;
        }
        seat.store->set("done", {1});
      }
      seat.store->wait({"done"}, contextTimeout());
    });
  }
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
