// Threads of both ranks wait on one pair, each for something else, when its
// queue pair fails: all are told the reason, and not the flush that follows.
#include <gmock/gmock.h>

#include <array>
#include <barrier>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/transport/contract/contract.h"
#include "tests/transport/ibverbs/fake_devices.h"
#include "transport/ibverbs/api.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr size_t kSize = 100000;  // neither copied nor inlined
constexpr int kWaiters = 7;       // of a rank

struct Waiter {
  const char* name;
  std::function<void()> wait;
};

class VerbsWaitersTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(mistakesOfFakeVerbs(), ""); }

  // What each threw; empty: it returned.
  std::vector<std::string> waitAll(const std::vector<Waiter>& waiters) {
    std::vector<std::string> texts(waiters.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < waiters.size(); i++) {
      threads.emplace_back([&, i] {
        waiting_.arrive_and_wait();
        try {
          waiters[i].wait();
        } catch (const IoException& e) {
          texts[i] = e.what();
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    return texts;
  }

  std::barrier<> ranks_{2};
  // All of them, and who does the harm.
  std::barrier<> waiting_{2 * kWaiters + 1};
};

TEST_F(VerbsWaitersTest, AllOfAPairAreToldTheReason) {
  const auto maker = fakeVerbsDevices(asynchronousDevices(5));
  const std::string words =
      transport::ibverbs::api().wcStatusStr(IBV_WC_LOC_PROT_ERR);
  std::array<std::string, 2> keys;
  spawn(Mode::kThreads, maker, 2, [&](const ContextPtr& context) {
    const int peer = 1 - context->rank;
    Message target(context, kSize);
    keys[static_cast<size_t>(context->rank)] =
        target.buffer->getRemoteKey()->serialize();
    auto& pair = *context->getPair(peer);
    Message out(context, kSize);
    Message in(context, kSize);
    Message one(context, kSize);
    const auto boundIn = pair.createRecvBuffer(7, target.bytes.data(), kSize);
    const auto boundOut = pair.createSendBuffer(7, out.bytes.data(), kSize);
    meet(context);
    const auto key =
        context->deserializeRemoteKey(keys[static_cast<size_t>(peer)]);
    ranks_.arrive_and_wait();
    if (context->rank == 0) {
      fakeVerbs().pause();  // what is posted from here on stays on its way
    }
    ranks_.arrive_and_wait();

    out.buffer->send(peer, 1);
    in.buffer->recv(peer, 2);
    in.buffer->recv(std::vector<int>{peer}, 3);
    boundOut->send();
    one.buffer->put(*key, 4, 0, 0, kSize);
    one.buffer->recv(peer, 5);
    const std::vector<Waiter> waiters = {
        {"send", [&] { out.buffer->waitSend(); }},
        {"recv", [&] { in.buffer->waitRecv(); }},
        {"recv of any", [&] { in.buffer->waitRecv(); }},
        {"bound send", [&] { boundOut->waitSend(); }},
        {"bound recv", [&] { boundIn->waitRecv(); }},
        {"put", [&] { one.buffer->waitSend(); }},
        {"recv beside a put", [&] { one.buffer->waitRecv(); }}};
    ASSERT_EQ(waiters.size(), size_t{kWaiters});
    std::thread harm;
    if (context->rank == 0) {
      harm = std::thread([&] {
        waiting_.arrive_and_wait();
        fakeVerbs().failReceive(fakeVerbs().queuePairs().front(),
                                IBV_WC_LOC_PROT_ERR, 4711);
      });
    }
    const auto texts = waitAll(waiters);
    for (size_t i = 0; i < texts.size(); i++) {
      EXPECT_THAT(texts[i],
                  AllOf(HasSubstr(words), HasSubstr("vendor code 4711"),
                        HasSubstr("rank 0"), HasSubstr("rank 1")))
          << waiters[i].name << ", rank " << context->rank;
    }
    if (harm.joinable()) {
      harm.join();
    }
    ranks_.arrive_and_wait();
    if (context->rank == 0) {
      fakeVerbs().resume();
    }
    ranks_.arrive_and_wait();
  });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
