// That the devices in memory keep the rules of real ones, or the tests over
// them would prove nothing. The rules are those of the man pages and of the
// InfiniBand specification, volume 1, chapters 9 to 11.
#include "tests/support/fake_verbs/fake_verbs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "transport/ibverbs/api.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using testing::ElementsAre;
using transport::ibverbs::Api;
using transport::ibverbs::api;

// Two connected queue pairs with one region each.
class FakeVerbsTest : public testing::TestWithParam<uint64_t> {
 protected:
  struct End {
    ibv_pd* pd = nullptr;
    ibv_cq* cq = nullptr;
    ibv_qp* qp = nullptr;
    ibv_mr* mr = nullptr;
    std::array<char, 64> memory{};
  };

  void SetUp() override {
    FakeVerbsConfig config;
    config.seed = GetParam();
    fake_ = std::make_unique<FakeVerbs>(config);
    ibv_device** list = api().getDeviceList(nullptr);
    context_ = api().openDevice(list[0]);
    api().freeDeviceList(list);
    make(a_);
    make(b_);
    connect(a_, b_);
    connect(b_, a_);
  }

  void TearDown() override {
    for (End* end : {&a_, &b_}) {
      EXPECT_EQ(api().destroyQp(end->qp), 0);
      EXPECT_EQ(api().deregMr(end->mr), 0);
      EXPECT_EQ(api().destroyCq(end->cq), 0);
      EXPECT_EQ(api().deallocPd(end->pd), 0);
    }
    EXPECT_EQ(api().closeDevice(context_), 0);
    EXPECT_EQ(fake_->alive(), "");
  }

  void make(End& end) {
    end.pd = api().allocPd(context_);
    end.cq = api().createCq(context_, 64, nullptr, nullptr, 0);
    end.mr = api().regMr(end.pd, end.memory.data(), end.memory.size(),
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = end.cq;
    init.qp_type = IBV_QPT_RC;
    init.cap = {4, 4, 1, 1, 16};
    end.qp = api().createQp(end.pd, &init);
    ASSERT_NE(end.qp, nullptr);
  }

  void connect(End& end, const End& other) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    ASSERT_EQ(api().modifyQp(end.qp, &attr,
                             IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                 IBV_QP_ACCESS_FLAGS),
              0);
    attr.qp_state = IBV_QPS_RTR;
    attr.dest_qp_num = other.qp->qp_num;
    attr.path_mtu = IBV_MTU_1024;
    attr.min_rnr_timer = 1;
    ASSERT_EQ(
        api().modifyQp(end.qp, &attr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                           IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
        0);
    attr.qp_state = IBV_QPS_RTS;
    ASSERT_EQ(api().modifyQp(end.qp, &attr,
                             IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                 IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                 IBV_QP_MAX_QP_RD_ATOMIC),
              0);
  }

  static ibv_sge piece(End& end, size_t offset, uint32_t bytes) {
    return {reinterpret_cast<uint64_t>(end.memory.data() + offset), bytes,
            end.mr->lkey};
  }

  int send(End& end, uint64_t id, ibv_wr_opcode opcode, ibv_sge from,
           uint64_t to = 0, uint32_t key = 0,
           unsigned flags = IBV_SEND_SIGNALED) {
    ibv_send_wr wr{};
    wr.wr_id = id;
    wr.sg_list = &from;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.send_flags = flags;
    wr.imm_data = 77;
    wr.wr.rdma = {to, key};
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(end.qp, &wr, &bad);
  }

  int receive(End& end, uint64_t id, ibv_sge into) {
    ibv_recv_wr wr{};
    wr.wr_id = id;
    wr.sg_list = &into;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(end.qp, &wr, &bad);
  }

  // The next completion; waits for it.
  ibv_wc next(End& end) {
    ibv_wc wc{};
    while (ibv_poll_cq(end.cq, 1, &wc) == 0) {
      std::this_thread::yield();
    }
    return wc;
  }

  static uint64_t place(const End& end) {
    return reinterpret_cast<uint64_t>(end.memory.data());
  }

  std::unique_ptr<FakeVerbs> fake_;
  ibv_context* context_ = nullptr;
  End a_, b_;
};

TEST_P(FakeVerbsTest, ASendFillsTheOldestReceive) {
  receive(b_, 5, piece(b_, 0, 16));
  std::strcpy(a_.memory.data(), "hello");
  ASSERT_EQ(send(a_, 9, IBV_WR_SEND_WITH_IMM, piece(a_, 0, 6)), 0);
  const ibv_wc received = next(b_);
  EXPECT_EQ(received.wr_id, 5u);
  EXPECT_EQ(received.status, IBV_WC_SUCCESS);
  EXPECT_EQ(received.byte_len, 6u);
  EXPECT_EQ(received.imm_data, 77u);
  EXPECT_STREQ(b_.memory.data(), "hello");
  EXPECT_EQ(next(a_).wr_id, 9u);
  EXPECT_EQ(fake_->counts().receiverNotReady, 0u);
}

TEST_P(FakeVerbsTest, ASendWithoutReceiveWaitsAndIsCounted) {
  ASSERT_EQ(send(a_, 9, IBV_WR_SEND, piece(a_, 0, 6)), 0);
  while (fake_->counts().receiverNotReady == 0) {
    std::this_thread::yield();
  }
  receive(b_, 5, piece(b_, 0, 16));
  EXPECT_EQ(next(b_).wr_id, 5u);
  EXPECT_EQ(fake_->counts().receiverNotReady, 1u);
}

TEST_P(FakeVerbsTest, AWriteWithImmediateConsumesAReceiveButNotItsMemory) {
  receive(b_, 5, piece(b_, 0, 16));
  std::strcpy(a_.memory.data(), "hello");
  send(a_, 9, IBV_WR_RDMA_WRITE_WITH_IMM, piece(a_, 0, 6), place(b_) + 32,
       b_.mr->rkey);
  EXPECT_EQ(next(b_).opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_STREQ(b_.memory.data() + 32, "hello");
  EXPECT_EQ(b_.memory[0], 0);
}

TEST_P(FakeVerbsTest, AWriteOutOfBoundsMovesNothingAndFailsBothEnds) {
  receive(b_, 5, piece(b_, 0, 16));
  a_.memory.fill('x');
  send(a_, 9, IBV_WR_RDMA_WRITE, piece(a_, 0, 6), place(b_) + 60, b_.mr->rkey);
  EXPECT_EQ(next(a_).status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(next(b_).status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(b_.memory[60], 0);
  EXPECT_EQ(fake_->state(b_.qp->qp_num), IBV_QPS_ERR);
}

TEST_P(FakeVerbsTest, ASendLongerThanItsReceiveFailsBothEnds) {
  receive(b_, 5, piece(b_, 0, 4));
  a_.memory.fill('x');
  send(a_, 9, IBV_WR_SEND, piece(a_, 0, 6));
  EXPECT_EQ(next(b_).status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(next(a_).status, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(b_.memory[0], 0);
}

TEST_P(FakeVerbsTest, RoomOfUnsignalledSendsIsFreeAfterALaterCompletion) {
  for (uint64_t i = 0; i < 4; i++) {
    const unsigned flags = i == 3 ? IBV_SEND_SIGNALED : 0;
    ASSERT_EQ(send(a_, i, IBV_WR_RDMA_WRITE, piece(a_, 0, 6), place(b_),
                   b_.mr->rkey, flags),
              0);
  }
  EXPECT_EQ(send(a_, 4, IBV_WR_SEND, piece(a_, 0, 6)), ENOMEM);
  EXPECT_THAT(fake_->misuse(), ElementsAre("a full send queue was posted to"));
  EXPECT_EQ(next(a_).wr_id, 3u);
  EXPECT_EQ(send(a_, 5, IBV_WR_SEND, piece(a_, 0, 6)), 0);
}

TEST_P(FakeVerbsTest, AnErrorFlushesUnsignalledRequestsToo) {
  fake_->pause();
  receive(a_, 1, piece(a_, 0, 4));
  send(a_, 2, IBV_WR_SEND, piece(a_, 0, 6), 0, 0, 0);
  send(a_, 3, IBV_WR_SEND, piece(a_, 0, 6), 0, 0, 0);
  fake_->failNextSend(a_.qp->qp_num, IBV_WC_FATAL_ERR, 42);
  fake_->resume();
  const ibv_wc first = next(a_);
  EXPECT_EQ(first.status, IBV_WC_FATAL_ERR);
  EXPECT_EQ(first.vendor_err, 42u);
  EXPECT_EQ(next(a_).wr_id, 3u);
  EXPECT_EQ(next(a_).wr_id, 1u);
}

TEST_P(FakeVerbsTest, APeerThatIsGoneIsARetryError) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  api().modifyQp(b_.qp, &attr, IBV_QP_STATE);
  send(a_, 2, IBV_WR_SEND, piece(a_, 0, 6));
  EXPECT_EQ(next(a_).status, IBV_WC_RETRY_EXC_ERR);
}

TEST_P(FakeVerbsTest, HeldCompletionsKeepTheOrderOfEachQueue) {
  fake_->holdCompletions();
  for (uint64_t i = 0; i < 4; i++) {
    receive(b_, i, piece(b_, 0, 8));
    send(a_, 10 + i, IBV_WR_SEND, piece(a_, 0, 6));
  }
  ibv_wc wc{};
  EXPECT_EQ(ibv_poll_cq(b_.cq, 1, &wc), 0);
  while (fake_->counts().completions < 8) {
    std::this_thread::yield();
  }
  fake_->releaseCompletions(1);
  for (uint64_t i = 0; i < 4; i++) {
    EXPECT_EQ(next(b_).wr_id, i);
    EXPECT_EQ(next(a_).wr_id, 10 + i);
  }
}

TEST_P(FakeVerbsTest, CallsFailAsTold) {
  fake_->fail(FakeCall::kRegMr, EPERM, 1, 1);
  ibv_mr* good = api().regMr(a_.pd, a_.memory.data(), 1, 0);
  ASSERT_NE(good, nullptr);
  EXPECT_EQ(api().regMr(a_.pd, a_.memory.data(), 1, 0), nullptr);
  EXPECT_EQ(errno, EPERM);
  api().deregMr(good);
}

INSTANTIATE_TEST_SUITE_P(, FakeVerbsTest, testing::Values(0, 1),
                         [](const auto& info) {
                           return info.param == 0 ? "synchronous"
                                                  : "asynchronous";
                         });

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
