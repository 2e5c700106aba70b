#include "tests/transport/tcp/harness.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>

#include <cerrno>
#include <chrono>

#include "tests/support/bytes.h"

GLOO_NAMESPACE_BEGIN
namespace test {

using transport::base::FrameHeader;
using transport::base::FrameType;
using transport::base::Poller;
using transport::base::SocketAddress;
using transport::base::UniqueFd;

std::pair<UniqueFd, UniqueFd> tcpPair() {
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const UniqueFd listener = transport::base::listenOn(
      SocketAddress(reinterpret_cast<sockaddr*>(&any), sizeof(any)), 1);
  UniqueFd client;
  transport::base::startConnect(transport::base::localAddress(listener.get()),
                                &client);
  pollfd ready{listener.get(), POLLIN, 0};
  EXPECT_EQ(1, ::poll(&ready, 1, 10000));
  UniqueFd server;
  EXPECT_EQ(0, transport::base::acceptFrom(listener.get(), &server));
  return {std::move(client), std::move(server)};
}

char* Recorder::onPayload(const FrameHeader& header) {
  memory_.resize(header.payloadBytes);
  char* place = refusePayload ? nullptr : memory_.data();
  if (hook) {
    hook("onPayload");
  }
  return place;
}

void Recorder::onFrame(const FrameHeader& header, const char* payload) {
  if (keepFrames) {
    frames.push_back({header, std::string(payload != nullptr ? payload : "",
                                          header.payloadBytes)});
  }
  if (hook) {
    hook("onFrame");
  }
}

void Recorder::onBound(uint32_t, uint64_t, const char*, size_t) {
  ADD_FAILURE() << "onBound";
}

void Recorder::onWritten(uint32_t) { ADD_FAILURE() << "onWritten"; }

void Recorder::onComplete(void* token) {
  completed.push_back(token);
  if (hook) {
    hook("onComplete");
  }
}

void Recorder::onLost(internal::Cause cause, bool ended) {
  losses.emplace_back(cause.text, ended);
  if (hook) {
    hook("onLost");
  }
}

LinkEnd::LinkEnd(UniqueFd socket, int peers)
    : domain_(std::make_unique<transport::base::ProgressDomain>()) {
  const auto lock = domain_->lock();
  owned_ = std::make_unique<transport::tcp::TcpFactory>(*domain_);
  domain_->remove(owned_->poller());  // polled by hand
  factory_ = owned_.get();
  const auto pending = factory_->prepare(peers);
  transport::base::Hello theirs;
  theirs.blob = pending->blob();
  link = pending->complete(std::move(socket), theirs, recorder);
}

LinkEnd::LinkEnd(transport::tcp::TcpFactory& factory, UniqueFd socket)
    : factory_(&factory) {
  const auto pending = factory_->prepare(1);
  transport::base::Hello theirs;
  theirs.blob = pending->blob();
  link = pending->complete(std::move(socket), theirs, recorder);
}

LinkEnd::~LinkEnd() { link.reset(); }

uint64_t LinkEnd::systemCalls() const {
  internal::Statistics statistics;
  factory_->addStatistics(statistics);
  return statistics.systemCalls;
}

bool LinkEnd::send(const char* payload, size_t bytes, void* token,
                   uint64_t number) {
  return link->send(dataFrame(bytes, number), payload, token);
}

FrameHeader dataFrame(size_t bytes, uint64_t number) {
  FrameHeader header;
  header.type = FrameType::kData;
  header.payloadBytes = static_cast<uint32_t>(bytes);
  header.bytes = bytes;
  header.number = number;
  return header;
}

std::string wireBytes(const FrameHeader& header, const std::string& payload) {
  std::string bytes(FrameHeader::kBytes, '\0');
  transport::base::encode(header, bytes.data());
  return bytes + payload;
}

bool pollUntil(std::initializer_list<Poller*> pollers,
               const std::function<bool()>& done) {
  const auto limit =
      std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!done()) {
    for (Poller* poller : pollers) {
      poller->poll();
    }
    if (std::chrono::steady_clock::now() > limit) {
      return done();
    }
  }
  return true;
}

std::string readAll(int socket, Poller* poller) {
  std::string bytes;
  std::vector<char> chunk(1 << 16);
  for (;;) {
    if (poller != nullptr) {
      poller->poll();
    }
    const ssize_t n = ::recv(socket, chunk.data(), chunk.size(), 0);
    if (n > 0) {
      bytes.append(chunk.data(), static_cast<size_t>(n));
    } else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
      return bytes;
    } else if (poller == nullptr) {
      pollfd ready{socket, POLLIN, 0};
      ::poll(&ready, 1, 10000);
    }
  }
}

void writeAll(int socket, const std::string& bytes) {
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t n =
        ::send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n > 0) {
      sent += static_cast<size_t>(n);
    } else {
      ASSERT_TRUE(errno == EAGAIN) << errno;
    }
  }
}

std::string text(uint64_t seed, size_t bytes) {
  const std::vector<char> data = pattern(seed, bytes);
  return {data.begin(), data.end()};
}

FrameHeader bye() {
  FrameHeader header;
  header.type = FrameType::kBye;
  return header;
}

}  // namespace test
GLOO_NAMESPACE_END
