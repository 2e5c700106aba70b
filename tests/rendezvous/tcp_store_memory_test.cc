// A TCP store's server that runs out of memory.
#include <gtest/gtest.h>

#include <atomic>
#include <new>

#include "gloo/rendezvous/tcp_store.h"
#include "rendezvous/socket.h"
#include "rendezvous/tcp_store_wire.h"
#include "tests/support/own_new.h"

namespace {
std::atomic<bool> exhausted{false};
thread_local bool spared = false;
}  // namespace

bool mayAllocate() { return !exhausted || spared; }

namespace gloo_test {

namespace {

using namespace gloo::rendezvous;
using gloo::Deadline;

TEST(TcpStoreMemoryTest, AWaitThatCannotBeAnsweredCostsItsClientTheConnection) {
  spared = true;
  TcpStoreServer server("127.0.0.1", 0);
  const Deadline soon = Deadline::after(std::chrono::seconds(20));
  tcpstore::Request request;
  request.op = tcpstore::Op::kWaitAny;
  request.milliseconds = 2000;
  request.keys = {"never"};
  const UniqueFd fd = connectTcp("127.0.0.1", server.port(), soon);
  sendAll(fd.get(),
          tcpstore::encodeFrame(static_cast<uint8_t>(request.op), 7,
                                tcpstore::encodeRequest(request)),
          soon);
  TcpStore store("127.0.0.1", server.port());
  store.set("k", {'v'});  // by then the server has read what came before

  exhausted = true;
  char byte = 0;
  try {
    recvSome(fd.get(), std::span(&byte, 1), soon);
    ADD_FAILURE() << "there was an answer";
  } catch (const TransientError& error) {
    EXPECT_EQ(std::string(error.what()).find("Timed out"), std::string::npos);
  }
  exhausted = false;
  EXPECT_EQ(store.get("k"), std::vector<char>{'v'});
}

}  // namespace

}  // namespace gloo_test
