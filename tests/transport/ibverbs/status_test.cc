// Each completion status, each event of a queue pair, and immediate values that
// name nothing: what a device or a peer can say that is not success.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/process_group.h"
#include "tests/transport/ibverbs/harm.h"
#include "transport/ibverbs/api.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

std::string inWords(ibv_wc_status status) {
  return transport::ibverbs::api().wcStatusStr(status);
}

class VerbsStatusTest : public VerbsFailureTest,
                        public testing::WithParamInterface<int> {
 protected:
  ibv_wc_status status() const { return ibv_wc_status(GetParam()); }
  testing::Matcher<std::string> named() const {
    return AllOf(HasSubstr(words_),
                 HasSubstr("status " + std::to_string(GetParam()) + ","),
                 HasSubstr("vendor code 4711"), HasSubstr("rank 0"),
                 HasSubstr("rank 1"));
  }
  std::string words_;
};

TEST_P(VerbsStatusTest, OfASendReachesBothRanks) {
  const Texts both = texts(
      [&](FakeVerbs& fake) {
        words_ = inWords(status());
        fake.failNextSend(firstQp(fake), status(), 4711);
      },
      &exchangeForEver);
  expectBoth(both, named());
}

TEST_P(VerbsStatusTest, OfAReceiveReachesBothRanksWhileTheyWait) {
  const auto start = now();
  const Texts both = texts(
      [&](FakeVerbs& fake) {
        words_ = inWords(status());
        fake.failReceive(firstQp(fake), status(), 4711);
      },
      &wait);
  expectBoth(both, named());
  EXPECT_LT(now() - start, seconds(3) * slowness());
}

std::vector<int> statuses() {
  std::vector<int> all;
  for (int status = IBV_WC_SUCCESS + 1; status <= IBV_WC_TM_RNDV_INCOMPLETE;
       status++) {
    all.push_back(status);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(, VerbsStatusTest, testing::ValuesIn(statuses()),
                         [](const auto& info) {
                           return std::to_string(info.param);
                         });

// Before the completions that may follow from it.
TEST_F(VerbsFailureTest, EachEventOfAQueuePairIsNamed) {
  const std::pair<ibv_event_type, const char*> events[] = {
      {IBV_EVENT_QP_FATAL, "local work queue catastrophic error"},
      {IBV_EVENT_QP_REQ_ERR, "invalid request local work queue error"},
      {IBV_EVENT_QP_ACCESS_ERR, "local access violation work queue error"},
      {IBV_EVENT_QP_LAST_WQE_REACHED, "last WQE reached"},
      {IBV_EVENT_PATH_MIG_ERR, "failed path migration"}};
  for (const auto& [event, words] : events) {
    const Texts both =
        texts([type = event](
                  FakeVerbs& fake) { fake.raiseOnQp(type, firstQp(fake)); },
              &wait);
    expectBoth(both, HasSubstr(words));
  }
}

TEST_F(VerbsFailureTest, ANewLidEndsWhatPeersReachedByTheOldOne) {
  FakeDevices devices = asynchronousDevices(5);
  FakePort& port = devices.config.ports[0];
  port.ethernet = false;
  port.lid = 7;
  FakePort after = port;
  after.lid = 9;
  for (const auto event : {IBV_EVENT_LID_CHANGE, IBV_EVENT_PORT_ACTIVE}) {
    const auto start = now();
    const Texts both = texts(
        [&](FakeVerbs& fake) {
          fake.replacePort(1, after);
          fake.raise(event);
        },
        &wait, devices);
    expectBoth(both, AllOf(HasSubstr("has LID 9 now, and no longer 7"),
                           HasSubstr("make a new context")));
    EXPECT_LT(now() - start, seconds(1) * slowness());
    EXPECT_EQ(mistakesOfFakeVerbs(), "");
  }
}

class VerbsHarmlessTest : public VerbsFailureTest,
                          public testing::WithParamInterface<bool> {};

TEST_P(VerbsHarmlessTest, EventsThatConcernNobodyChangeNothing) {
  FakeDevices devices = asynchronousDevices(5);
  devices.attr.reasonTime = std::chrono::milliseconds(0);  // to wait for none
  devices.config.ports[0].ethernet = GetParam();
  devices.config.ports[0].lid = 7;  // stays
  const auto maker = fakeVerbsDevices(devices);
  spawn(Mode::kThreads, maker, 2, [this](const ContextPtr& context) {
    meet(context);
    for (const auto event :
         {IBV_EVENT_LID_CHANGE, IBV_EVENT_PKEY_CHANGE, IBV_EVENT_SM_CHANGE,
          IBV_EVENT_SRQ_ERR, IBV_EVENT_SRQ_LIMIT_REACHED,
          IBV_EVENT_CLIENT_REREGISTER, IBV_EVENT_GID_CHANGE,
          IBV_EVENT_PORT_ACTIVE, IBV_EVENT_WQ_FATAL}) {
      fakeVerbs().raise(event);
    }
    meetOutside();
    if (context->rank == 0) {
      for (const uint32_t qpn : fakeVerbs().queuePairs()) {
        for (const auto event :
             {IBV_EVENT_COMM_EST, IBV_EVENT_SQ_DRAINED, IBV_EVENT_PATH_MIG}) {
          fakeVerbs().raiseOnQp(event, qpn);
        }
      }
    }
    while (fakeVerbs().pendingEvents() > 0) {
      std::this_thread::yield();  // until they have been heard
    }
    for (int i = 0; i < 100; i++) {
      meet(context);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(, VerbsHarmlessTest, testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Ethernet" : "InfiniBand";
                         });

// The memory of receives and of bound buffers stays as it is.
TEST_F(VerbsFailureTest, AnImmediateValueThatNamesNothingIsRefused) {
  struct Case {
    ibv_wc_opcode opcode;
    uint32_t immediate;
    const char* text;
  };
  constexpr uint32_t kBound = uint32_t{1} << 31;
  const Case cases[] = {
      {IBV_WC_RECV_RDMA_WITH_IMM, 7, "bytes for advert 7"},
      {IBV_WC_RECV_RDMA_WITH_IMM, kBound - 1, "bytes for advert 2147483647"},
      {IBV_WC_RECV_RDMA_WITH_IMM, kBound | 7, "buffer 7"},
      {IBV_WC_RECV_RDMA_WITH_IMM, UINT32_MAX, "buffer 2147483647"},
      {IBV_WC_RECV, 1 << 16, "immediate value 65536, which means nothing"},
      {IBV_WC_RECV, UINT32_MAX, "immediate value 4294967295"}};
  for (const Case& c : cases) {
    const auto work = [&c](const ContextPtr& context) {
      constexpr size_t kBytes = 1 << 17;
      const int peer = 1 - context->rank;
      Message in(context, std::vector<char>(kBytes, 'c'));
      std::vector<char> place(kBytes, 'c');
      auto bound =
          context->getPair(peer)->createRecvBuffer(1, place.data(), kBytes);
      in.buffer->recv(peer, 1);
      if (context->rank == 0) {
        fakeVerbs().deliverImmediate(firstQp(fakeVerbs()), c.immediate,
                                     c.opcode);
      }
      try {
        in.buffer->waitRecv();
      } catch (const IoException&) {
        EXPECT_EQ(std::count(in.bytes.begin(), in.bytes.end(), 'c'), kBytes);
        EXPECT_EQ(std::count(place.begin(), place.end(), 'c'), kBytes);
        throw;
      }
    };
    const Texts both = texts([](FakeVerbs&) {}, work);
    expectBoth(both, AllOf(HasSubstr(c.text), HasSubstr("rank 0"),
                           HasSubstr("rank 1")));
  }
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
