#include "gloo/rendezvous/tcp_store.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <random>
#include <thread>

#include "gloo/common/error.h"
#include "rendezvous/operation_deadline.h"
#include "rendezvous/socket.h"
#include "rendezvous/tcp_store_wire.h"
#include "tests/rendezvous/child_process.h"
#include "tests/rendezvous/store_kinds.h"

namespace gloo_test {

namespace {

using namespace gloo::rendezvous;
using gloo::Deadline;
using std::chrono::milliseconds;
using std::chrono::seconds;

Deadline soon() { return Deadline::after(seconds(20)); }

// Blocks until the server has closed the connection; what it said before.
std::string readToEnd(int fd) {
  std::string text;
  char bytes[1000];
  try {
    for (;;) {
      text.append(bytes, recvSome(fd, bytes, soon()));
    }
  } catch (const TransientError& error) {
    EXPECT_EQ(std::string(error.what()).find("Timed out"), std::string::npos);
  }
  return text;
}

class TcpStoreTest : public testing::Test {
 protected:
  void expectUnharmed() {
    TcpStore store("127.0.0.1", server_.port());
    store.set("alive", bytesOf("yes"));
    EXPECT_EQ(store.get("alive"), bytesOf("yes"));
  }
  UniqueFd rawConnection() {
    return connectTcp("127.0.0.1", server_.port(), soon());
  }

  TcpStoreServer server_{"127.0.0.1", 0};
};

TEST_F(TcpStoreTest, GarbageCostsItsSenderTheConnection) {
  std::mt19937 random(1);
  for (int i = 0; i < 50; i++) {
    std::vector<char> garbage(64);
    for (char& c : garbage) {
      c = static_cast<char>(random());
    }
    const UniqueFd fd = rawConnection();
    sendAll(fd.get(), garbage, soon());
    EXPECT_EQ(readToEnd(fd.get()), "");
  }
  expectUnharmed();
}

TEST_F(TcpStoreTest, AnHttpClientIsRefused) {
  const UniqueFd fd = rawConnection();
  sendAll(fd.get(), std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), soon());
  EXPECT_EQ(readToEnd(fd.get()), "");
  expectUnharmed();
}

TEST_F(TcpStoreTest, AnotherVersionIsToldSo) {
  auto frame = tcpstore::encodeFrame(1, 7, bytesOf("body"));
  frame[4]++;
  const UniqueFd fd = rawConnection();
  sendAll(fd.get(), frame, soon());
  EXPECT_NE(readToEnd(fd.get()).find("version"), std::string::npos);
  expectUnharmed();
}

TEST_F(TcpStoreTest, AFrameThatAnnouncesTooMuchIsRefused) {
  auto frame = tcpstore::encodeFrame(1, 7, {});
  frame[15] = 0x7f;  // of bodyBytes
  const UniqueFd fd = rawConnection();
  sendAll(fd.get(), frame, soon());
  EXPECT_EQ(readToEnd(fd.get()), "");
  expectUnharmed();
}

TEST_F(TcpStoreTest, AMalformedBodyIsToldSo) {
  // A count of keys that are not there.
  const UniqueFd fd = rawConnection();
  sendAll(fd.get(), tcpstore::encodeFrame(2, 7, std::vector<char>(4, '\x7f')),
          soon());
  EXPECT_NE(readToEnd(fd.get()).find("malformed"), std::string::npos);
  expectUnharmed();
}

TEST_F(TcpStoreTest, AFrameInPiecesIsARequest) {
  tcpstore::Request request;
  request.op = tcpstore::Op::kSet;
  request.keys = {"k"};
  request.values = {bytesOf("v")};
  const auto frame =
      tcpstore::encodeFrame(1, 7, tcpstore::encodeRequest(request));
  const UniqueFd fd = rawConnection();
  for (const char c : frame) {
    sendAll(fd.get(), std::span(&c, 1), soon());
  }
  TcpStore store("127.0.0.1", server_.port());
  EXPECT_EQ(store.get("k"), bytesOf("v"));
}

TEST_F(TcpStoreTest, TooLongKeysAndValuesAreTheCallersFault) {
  TcpStore store("127.0.0.1", server_.port());
  EXPECT_THROW(
      store.set(std::string(TcpStoreServer::kMaxKeyBytes + 1, 'k'), {}),
      gloo::InvalidOperationException);
  EXPECT_THROW(
      store.set("k", std::vector<char>(TcpStoreServer::kMaxRequestBytes)),
      gloo::InvalidOperationException);
  expectUnharmed();
}

TEST_F(TcpStoreTest, AFullStoreSaysSo) {
  TcpStore store("127.0.0.1", server_.port());
  const std::vector<char> value(TcpStoreServer::kMaxRequestBytes - 100);
  bool full = false;
  for (int i = 0; i < 20 && !full; i++) {
    try {
      store.set(std::to_string(i), value);
    } catch (const gloo::IoException& error) {
      full = std::string(error.what()).find("full") != std::string::npos;
    }
  }
  EXPECT_TRUE(full);
  expectUnharmed();
}

// A request to look at `key`, named `times` times.
std::vector<char> peekFrame(const std::string& key, size_t times) {
  tcpstore::Request request;
  request.op = tcpstore::Op::kPeek;
  request.keys.assign(times, key);
  return tcpstore::encodeFrame(static_cast<uint8_t>(request.op), 7,
                               tcpstore::encodeRequest(request));
}

TEST_F(TcpStoreTest, ASmallRequestForALargeAnswerIsRefused) {
  TcpStore store("127.0.0.1", server_.port());
  const std::vector<char> value(TcpStoreServer::kMaxRequestBytes - 100);
  store.set("k", value);
  const UniqueFd fd = rawConnection();
  sendAll(fd.get(),
          peekFrame("k", tcpstore::kMaxAnswerBytes / value.size() + 1), soon());
  char bytes[tcpstore::kHeaderBytes];
  for (size_t n = 0; n < sizeof bytes;) {
    n += recvSome(fd.get(), std::span(bytes).subspan(n), soon());
  }
  const auto header = tcpstore::decodeHeader(bytes, SIZE_MAX);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->op, static_cast<uint8_t>(tcpstore::Status::kError));
  EXPECT_LT(header->bodyBytes, 1000U);
  expectUnharmed();
}

// The server would hold answers that nobody reads, or be told for ever of what
// it does not read.
TEST_F(TcpStoreTest, WhoAsksAgainBeforeItHasReadItsAnswerIsDropped) {
  TcpStore store("127.0.0.1", server_.port());
  const std::vector<char> value(TcpStoreServer::kMaxRequestBytes - 100);
  store.set("k", value);
  const UniqueFd fd = rawConnection();
  sendAll(fd.get(), peekFrame("k", 4), soon());
  ASSERT_TRUE(pollUntil(fd.get(), POLLIN, soon()));
  sendAll(fd.get(), tcpstore::encodeFrame(99, 8, {}), soon());
  expectUnharmed();
  EXPECT_LT(readToEnd(fd.get()).size(), 4 * value.size());
}

TEST_F(TcpStoreTest, WaitersThatAreKilledAreForgotten) {
  for (int i = 0; i < 20; i++) {
    ChildProcess child([&] {
      TcpStore store("127.0.0.1", server_.port());
      store.set("ready" + std::to_string(i), {});
      store.wait_any({"k"}, Deadline());
      return 0;
    });
    TcpStore store("127.0.0.1", server_.port());
    store.wait({"ready" + std::to_string(i)}, seconds(20));
    child.kill();
  }
  TcpStore store("127.0.0.1", server_.port());
  store.set("k", bytesOf("v"));
  expectUnharmed();
}

TEST(TcpStoreServerTest, APortThatIsTakenIsNamed) {
  TcpStoreServer first("127.0.0.1", 0);
  try {
    TcpStoreServer second("127.0.0.1", first.port());
    FAIL() << "no exception";
  } catch (const gloo::IoException& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find(std::to_string(first.port())), std::string::npos);
    EXPECT_NE(text.find("in use"), std::string::npos) << text;
  }
}

TEST(TcpStoreServerTest, WithoutADescriptorItSaysSo) {
  ChildProcess child([] {
    const UniqueFd next(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto limit = static_cast<rlim_t>(next.get() + 1);
    const rlimit none{limit, limit};
    if (::setrlimit(RLIMIT_NOFILE, &none) != 0) {
      return 2;
    }
    try {
      TcpStoreServer server("127.0.0.1", 0);
    } catch (const gloo::IoException& error) {
      const std::string text = error.what();
      return text.find("Too many open files") != std::string::npos &&
                     text.find("ulimit -n") != std::string::npos
                 ? 0
                 : 1;
    }
    return 3;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(TcpStoreServerTest, AClientMayStartBeforeTheServer) {
  int port = 0;
  {
    TcpStoreServer reserved("127.0.0.1", 0);
    port = reserved.port();
  }
  std::unique_ptr<TcpStoreServer> server;
  std::thread later([&] {
    EXPECT_THROW(TcpStore("127.0.0.1", port, milliseconds(60)),
                 gloo::IoException);
    server = std::make_unique<TcpStoreServer>("127.0.0.1", port);
  });
  TcpStore store("127.0.0.1", port, seconds(20));
  store.set("k", bytesOf("v"));
  later.join();
}

TEST(TcpStoreServerTest, WhoWaitsLongForAServerIsToldOnceWhy) {
  testing::internal::CaptureStderr();
  EXPECT_THROW(TcpStore("no-such-host.invalid", 1, milliseconds(4500)),
               gloo::IoException);
  const std::string text = testing::internal::GetCapturedStderr();
  const size_t at = text.find("cannot resolve host no-such-host.invalid");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_NE(text.find("trying again", at), std::string::npos) << text;
  EXPECT_EQ(text.find("cannot resolve", at + 1), std::string::npos) << text;
}

TEST(TcpStoreServerTest, ClientsOfAServerThatEndedAreToldAtTheirDeadline) {
  auto server = std::make_unique<TcpStoreServer>("127.0.0.1", 0);
  TcpStore store("127.0.0.1", server->port());
  store.set("k", bytesOf("v"));
  server.reset();
  const auto begin = std::chrono::steady_clock::now();
  try {
    store.wait_any({"x"}, Deadline::after(milliseconds(200)));
    FAIL() << "no exception";
  } catch (const gloo::IoException& error) {
    EXPECT_NE(std::string(error.what()).find("rank 0"), std::string::npos);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(5));
}

// All waits of a client whose server is there and does not answer, and of one
// whose server has ended.
TEST(TcpStoreServerTest, WaitsEndInTimeWithoutTheServersAnswer) {
  int port = 0;
  {
    TcpStoreServer reserved("127.0.0.1", 0);
    port = reserved.port();
  }
  ChildProcess server([port] {
    TcpStoreServer serving("127.0.0.1", port);
    ::pause();
    return 0;
  });
  TcpStore store("127.0.0.1", port, seconds(20));
  store.set("k", bytesOf("v"));
  const auto expectInTime = [](const std::function<void()>& wait) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_THROW(wait(), gloo::IoException);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(10));
  };
  ::kill(server.pid(), SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(server.pid(), &status, WUNTRACED), server.pid());
  expectInTime([&] { store.wait_get("k", milliseconds(100)); });
  server.kill();
  expectInTime([&] { store.wait({"k"}, milliseconds(100)); });
}

TEST(OperationDeadlineTest, OneThatIsLongerThanTheDefaultCounts) {
  EXPECT_LE(operationDeadline().left(), Store::kDefaultTimeout);
  const OperationDeadline longer(Deadline::after(2 * Store::kDefaultTimeout));
  EXPECT_GT(operationDeadline().left(), Store::kDefaultTimeout);
  {
    const OperationDeadline sooner(Deadline::after(seconds(1)));
    const OperationDeadline never{Deadline()};
    EXPECT_LE(operationDeadline().left(), seconds(1));
  }
  EXPECT_GT(operationDeadline().left(), Store::kDefaultTimeout);
}

TEST(TcpStoreServerTest, AForkedChildNeitherServesNorHarms) {
  TcpStoreServer server("127.0.0.1", 0);
  auto store = std::make_unique<TcpStore>("127.0.0.1", server.port());
  store->set("k", bytesOf("v"));
  ChildProcess child([&] {
    store.reset();
    const UniqueFd listener = listenTcp("127.0.0.1", 0);
    return listener ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(store->get("k"), bytesOf("v"));
}

// The numbers of the descriptors that were closed in the child are given away
// again: the child's own connections must not be taken for the store's.
TEST(TcpStoreServerTest, AnInheritedStoreTalksToItsOwnServerInTheChild) {
  TcpStoreServer server("127.0.0.1", 0);
  TcpStoreServer other("127.0.0.1", 0);
  TcpStore store("127.0.0.1", server.port());
  store.set("k", bytesOf("of its own server"));
  TcpStore("127.0.0.1", other.port()).set("k", bytesOf("of another"));
  ChildProcess child([&] {
    std::vector<UniqueFd> taken;
    for (int i = 0; i < 30; i++) {
      taken.push_back(connectTcp("127.0.0.1", other.port(), soon()));
    }
    return store.get("k") == bytesOf("of its own server") ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(store.get("k"), bytesOf("of its own server"));
}

TEST(TcpStoreServerTest, AnInheritedServerEndsQuietlyInTheChild) {
  auto server = std::make_unique<TcpStoreServer>("127.0.0.1", 0);
  const int port = server->port();
  ChildProcess child([&] {
    server.reset();
    return 0;
  });
  EXPECT_EQ(child.wait(), 0);
  TcpStore store("127.0.0.1", port);
  store.set("k", bytesOf("v"));
}

TEST_F(TcpStoreTest, ANegativeConnectTimeoutIsRefused) {
  EXPECT_THROW(TcpStore("127.0.0.1", server_.port(), milliseconds(-1)),
               gloo::InvalidOperationException);
}

TEST(OpenStoreTest, RankZeroServesTheTcpStoreForAll) {
  const int port = [] {
    TcpStoreServer reserved("127.0.0.1", 0);
    return reserved.port();
  }();
  const std::string url = "tcp://127.0.0.1:" + std::to_string(port);
  std::thread other(
      [&] { EXPECT_EQ(openStore(url, 1)->get("k"), bytesOf("v")); });
  openStore(url, 0)->set("k", bytesOf("v"));  // and leaves
  other.join();
}

TEST(OpenStoreTest, OnlyRankZeroMayLetTheSystemChooseThePort) {
  EXPECT_NO_THROW(openStore("tcp://localhost:0", 0));
  EXPECT_THROW(openStore("tcp://localhost:0", 1),
               gloo::InvalidOperationException);
}

}  // namespace

}  // namespace gloo_test
