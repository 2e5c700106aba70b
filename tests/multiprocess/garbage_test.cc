// Strangers talk to the listening port: they are refused, and the job does not
// notice.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>
#include <regex>

#include "gloo/rendezvous/file_store.h"
#include "gloo/transport/tcp/device.h"
#include "tests/fuzz/mutate.h"
#include "tests/multiprocess/job.h"
#include "transport/base/socket.h"
#include "transport/base/wire.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using transport::base::Hello;
using transport::base::UniqueFd;

uint16_t portOf(const std::string& text) {
  std::smatch match;
  EXPECT_TRUE(std::regex_search(text, match, std::regex(R"(\d:(\d+))")))
      << text;
  return static_cast<uint16_t>(std::stoi(match[1]));
}

UniqueFd call(uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address),
                      sizeof(address)),
            0);
  return fd;
}

void write(const UniqueFd& fd, const std::vector<char>& bytes) {
  ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

// The listener ends the connection, at once.
bool isClosed(const UniqueFd& fd) {
  char bytes[4096];
  pollfd p{fd.get(), POLLIN, 0};
  while (::poll(&p, 1, 5000) == 1) {
    if (::recv(fd.get(), bytes, sizeof(bytes), 0) <= 0) {
      return true;
    }
  }
  return false;
}

std::vector<char> helloTo(uint64_t nonce) {
  Hello hello;
  hello.srcRank = 1;
  hello.dstRank = 0;
  hello.size = 2;
  hello.srcNonce = 1234;
  hello.dstNonce = nonce;
  hello.linkKind = "tcp";
  return encode(hello);
}

// Kinds of strangers. Those that leave their connection open are held in
// `open` until the end.
void attack(uint16_t port, std::vector<UniqueFd>& open) {
  std::mt19937_64 random(7);
  const auto hello = helloTo(99);
  for (int i = 0; i < 60; i++) {
    UniqueFd fd = call(port);
    switch (i % 6) {
      case 0:  // another protocol
        write(fd, std::vector<char>(300, 'G'));
        EXPECT_TRUE(isClosed(fd));
        break;
      case 1:  // nothing at all
        break;
      case 2: {  // an altered hello
        auto bytes = hello;
        bytes[random() % bytes.size()] ^= static_cast<char>(1 + random() % 255);
        write(fd, bytes);
        break;
      }
      case 3:  // half a hello, and silence
        write(fd, {hello.begin(),
                   hello.begin() + static_cast<long>(random() % hello.size())});
        open.push_back(std::move(fd));
        break;
      case 4:  // to nobody who lives here
        write(fd, hello);
        EXPECT_TRUE(isClosed(fd));
        break;
      default:
        write(fd, mutate(hello, random));
    }
  }
}

void exchangeBoth(Context& context) {
  for (int i = 0; i < 50; i++) {
    exchangeRing(context, static_cast<uint64_t>(i), i % 5 == 0 ? 200000 : 64);
  }
}

TEST(GarbageTest, OnAConnectedJob) {
  Job::Options options;
  options.size = 2;
  Job job(options, [](Child& child, const std::shared_ptr<Context>& context) {
    child.say(context->getPair(1 - child.rank)->address().str());
    child.hear();
    exchangeBoth(*context);
    child.say("half");
    child.hear();
    exchangeBoth(*context);
  });
  job.go();
  std::vector<UniqueFd> open;
  std::vector<uint16_t> ports;
  for (int rank = 0; rank < 2; rank++) {
    ports.push_back(portOf(job.group().hear(rank, std::chrono::seconds(20))));
  }
  job.group().tellAll("go on");
  for (const uint16_t port : ports) {
    attack(port, open);
  }
  job.group().expectAll("half");
  job.group().tellAll("go on");
  for (int rank = 0; rank < 2; rank++) {
    const Failure failure = job.failure(rank, std::chrono::seconds(20));
    EXPECT_EQ(failure.type, "none") << failure.text;
  }
  job.group().joinAll();
}

// Before the others have come: strangers do not stand in their way.
TEST(GarbageTest, OnAJobThatIsConnecting) {
  ScratchDirectory directory;
  ProcessGroup group(2, [&](Child& child) {
    auto device = transport::tcp::CreateDevice("127.0.0.1");
    auto context = device->createContext(child.rank, 2);
    context->setTimeout(std::chrono::seconds(20));
    auto& pair = context->createPair(1 - child.rank);
    child.say(pair->address().str());
    child.hear();
    context->createAndConnectAllPairs(
        std::make_shared<rendezvous::FileStore>(directory.path()));
    char bytes[2] = {};
    auto buffer = context->createUnboundBuffer(bytes, 2);
    buffer->send(1 - child.rank, 1, 0, 1);
    buffer->recv(1 - child.rank, 1, 1, 1);
    EXPECT_TRUE(buffer->waitRecv());
    EXPECT_TRUE(buffer->waitSend());
  });
  std::vector<UniqueFd> open;
  for (int rank = 0; rank < 2; rank++) {
    attack(portOf(group.hear(rank, std::chrono::seconds(20))), open);
  }
  group.tellAll("go on");
  group.joinAll();
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
