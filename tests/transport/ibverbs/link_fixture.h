// A link by itself, without a pair, over RDMA devices in memory: one end, and
// in place of the other what its end is made of.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fake_verbs/fake_verbs.h"
#include "transport/ibverbs/link.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {

struct Recorder : base::LinkHandler {
  char* onPayload(const base::FrameHeader&) override { return payload.data(); }
  void onFrame(const base::FrameHeader& header, const char*) override {
    last = header;
    heard.push_back(header.type == base::FrameType::kAbort ? "abort"
                    : header.type == base::FrameType::kBye ? "bye"
                                                           : "frame");
  }
  void onBound(uint32_t, uint64_t, const char*, size_t) override {}
  void onWritten(uint32_t) override {}
  void onComplete(void* token) override { completed.push_back(token); }
  void onLost(internal::Cause cause, bool) override {
    heard.push_back(cause.text);
  }

  std::array<char, base::kMaxControlPayload> payload;
  base::FrameHeader last;  // frame
  std::vector<std::string> heard;
  std::vector<void*> completed;
};

inline attr loopback() {
  attr wanted;
  wanted.hostname = "127.0.0.1";
  return wanted;
}

class VerbsLinkTest : public testing::Test {
 protected:
  VerbsLinkTest() { connect(); }

  // Anew, if there was one.
  void connect() {
    link_.reset();
    peer_.reset();
    handler_.heard.clear();
    peerIsOpen_ = false;
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const base::UniqueFd listener = base::listenOn(
        base::SocketAddress(reinterpret_cast<sockaddr*>(&in), sizeof(in)), 1);
    base::UniqueFd ours;
    (void)base::startConnect(base::localAddress(listener.get()), &ours);
    awaitReadable(listener.get());
    base::UniqueFd theirs;
    EXPECT_EQ(base::acceptFrom(listener.get(), &theirs), 0);
    theirs_ = std::make_unique<SideChannel>(std::move(theirs), host_);

    const Shape shape = shapeFor(poller_.adapter(), 1);
    peer_ = std::make_unique<Endpoint>(poller_, shape);
    auto endpoint = std::make_unique<Endpoint>(poller_, shape);
    endpoint->connect(peer_->address());
    peer_->connect(endpoint->address());
    qp_ = endpoint->qp();
    tag_ = poller_.tagOf(endpoint->place(), false);
    socket_ = ours.get();
    poller_.watchSocket(endpoint->place(), socket_);
    link_ = std::make_unique<VerbsLink>(poller_, std::move(endpoint),
                                        SideChannel(std::move(ours), host_),
                                        shape.credits, handler_);
  }

  static void awaitReadable(int fd) {
    pollfd ready{fd, POLLIN, 0};
    EXPECT_EQ(::poll(&ready, 1, 10000), 1);
  }

  void peerSends(base::FrameType type) {
    base::FrameHeader header;
    header.type = type;
    peerSends(header, nullptr);
  }
  void peerSends(const base::FrameHeader& header, const char* payload) {
    if (!peerIsOpen_) {
      peer_->sends().open(peer_->shape().credits);
      peerIsOpen_ = true;
    }
    EXPECT_TRUE(peer_->sends().send(header, payload, nullptr));
  }

  // It completes with this number.
  static void postWrite(ibv_qp* qp, uint64_t id) {
    ibv_send_wr wr{};
    wr.wr_id = id;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(qp, &wr, &bad), 0);
  }
  void peerWrites(int count) {
    for (int i = 0; i < count; i++) {
      postWrite(peer_->qp(), poller_.tagOf(peer_->place(), false));
    }
  }

  void open() {
    theirs_->sayReady();
    awaitReadable(socket_);
    EXPECT_TRUE(link_->onSocket());
  }

  // Of no bytes.
  void write(int* token) {
    EXPECT_FALSE(
        link_->write(nullptr, 0, nullptr, {}, base::kNoImmediate, token));
  }

  // The device tells of the queue pair, which works on.
  void raiseOnLink() {
    fake_.raiseOnQp(IBV_EVENT_PATH_MIG_ERR, fake_.queuePairs().back());
    for (int i = 0; fake_.pendingEvents() > 0; i++) {
      ASSERT_LT(i, 1000);
      poller_.poll();
    }
  }

  // Completions that a poll takes from a queue.
  static constexpr int kPolled = 16;
  const std::chrono::milliseconds host_ = attr().hostTimeout;
  test::FakeVerbs fake_;
  VerbsPoller poller_{loopback()};
  Recorder handler_;
  std::unique_ptr<SideChannel> theirs_;
  std::unique_ptr<Endpoint> peer_;
  std::unique_ptr<VerbsLink> link_;
  int socket_ = -1;
  ibv_qp* qp_ = nullptr;  // of link_
  uint64_t tag_ = 0;
  bool peerIsOpen_ = false;
};

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
