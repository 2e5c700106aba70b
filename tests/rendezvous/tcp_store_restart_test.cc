// Waits of clients whose server ends, and is there again.
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "gloo/common/error.h"
#include "gloo/rendezvous/tcp_store.h"
#include "tests/rendezvous/store_kinds.h"

namespace gloo_test {

namespace {

using gloo::Deadline;
using gloo::rendezvous::TcpStore;
using gloo::rendezvous::TcpStoreServer;
using std::chrono::milliseconds;
using std::chrono::seconds;

class TcpStoreRestartTest : public testing::Test {
 protected:
  void restart() {
    const int port = server_->port();
    server_.reset();
    server_ = std::make_unique<TcpStoreServer>("127.0.0.1", port);
  }

  std::unique_ptr<TcpStoreServer> server_ =
      std::make_unique<TcpStoreServer>("127.0.0.1", 0);
  TcpStore store_{"127.0.0.1", server_->port()};
};

TEST_F(TcpStoreRestartTest, AWaitSurvivesIt) {
  bool found = false;
  std::thread waiter(
      [&] { found = store_.wait_any({"k"}, Deadline::after(seconds(20))); });
  // It waits, most likely, by then; either way it must succeed.
  EXPECT_FALSE(store_.wait_any({"never"}, Deadline::after(milliseconds(50))));
  restart();
  TcpStore("127.0.0.1", server_->port()).set("k", bytesOf("v"));
  waiter.join();
  EXPECT_TRUE(found);
}

// What the restarted server is asked for is the rest of the wait, not all of it
// again: nobody would wait for that answer, and the server, which is well,
// would be blamed.
TEST_F(TcpStoreRestartTest, AWaitThatSurvivesItEndsAtItsDeadline) {
  constexpr milliseconds kWait(2500);
  std::string error;
  std::thread waiter([&] {
    const auto begin = std::chrono::steady_clock::now();
    try {
      store_.wait({"x"}, kWait);
    } catch (const gloo::TimeoutException& timeout) {
      error = timeout.what();
    } catch (const gloo::IoException& other) {
      ADD_FAILURE() << other.what();
    }
    EXPECT_GE(std::chrono::steady_clock::now() - begin, kWait);
  });
  // More than a second of it passes.
  TcpStore clock("127.0.0.1", server_->port());
  EXPECT_FALSE(clock.wait_any({"never"}, Deadline::after(milliseconds(1500))));
  restart();
  waiter.join();
  EXPECT_NE(error.find("no value for x"), std::string::npos) << error;
}

}  // namespace

}  // namespace gloo_test
