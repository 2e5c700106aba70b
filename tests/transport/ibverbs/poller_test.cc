// What a poller, its adapter and its queues ask of a device.
#include "transport/ibverbs/poller.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "tests/support/fake_verbs/fake_verbs.h"
#include "transport/ibverbs/api.h"
#include "transport/ibverbs/endpoint.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {
namespace {

using testing::HasSubstr;

class VerbsPollerTest : public testing::Test {
 protected:
  test::FakeVerbs fake_;
  attr attr_;
};

// While there is one, the fake's library with other functions in it.
class Replaced {
 public:
  template <typename Change>
  explicit Replaced(const Change& change) {
    loaded_.api = api();
    change(*loaded_.api);
    replaceApi(&loaded_);
  }
  Replaced(const Replaced&) = delete;
  Replaced& operator=(const Replaced&) = delete;
  ~Replaced() { replaceApi(nullptr); }

 private:
  LoadedApi loaded_;
};

// The kernel makes one for each address that it takes from an interface.
TEST_F(VerbsPollerTest, ForManyEventsAtOnceThePortIsAskedOnce) {
  VerbsPoller poller(attr_);
  const uint64_t before = fake_.counts().portQueries;
  for (int i = 0; i < 10; i++) {
    fake_.raise(IBV_EVENT_GID_CHANGE);
  }
  while (fake_.pendingEvents() > 0) {
    poller.poll();
  }
  EXPECT_EQ(fake_.counts().portQueries - before, 1u);
}

TEST_F(VerbsPollerTest, LessInlineDataIsAskedForWhereThatMayHelp) {
  VerbsPoller poller(attr_);
  for (const int error : {EINVAL, EOPNOTSUPP, ENOSYS, ENOMEM}) {
    fake_.fail(test::FakeCall::kCreateQp, error);
    const Endpoint endpoint(poller, shapeFor(poller.adapter(), 1));
    EXPECT_EQ(endpoint.shape().caps.copiedBytes,
              static_cast<size_t>(attr_.inlineBytes) / 2);
  }
}

// As bnxt_re does: errno is an earlier call's.
ibv_qp* (*createQp)(ibv_pd*, ibv_qp_init_attr*) = nullptr;
ibv_qp* refuseWithoutErrno(ibv_pd* pd, ibv_qp_init_attr* init) {
  return init->cap.max_inline_data > 96 ? nullptr : createQp(pd, init);
}

TEST_F(VerbsPollerTest, LessInlineDataIsAskedForWhereTheDriverDoesNotSayWhy) {
  const Replaced silent([](Api& api) {
    createQp = std::exchange(api.createQp, &refuseWithoutErrno);
  });
  VerbsPoller poller(attr_);
  errno = EMFILE;
  const Endpoint endpoint(poller, shapeFor(poller.adapter(), 1));
  EXPECT_EQ(endpoint.shape().caps.copiedBytes,
            static_cast<size_t>(attr_.inlineBytes) / 4);
}

TEST_F(VerbsPollerTest, WhatLessInlineDataDoesNotMendIsAnErrorAtOnce) {
  VerbsPoller poller(attr_);
  fake_.fail(test::FakeCall::kCreateQp, EMFILE);
  try {
    Endpoint(poller, shapeFor(poller.adapter(), 1));
    FAIL();
  } catch (const IoException& e) {
    EXPECT_THAT(e.what(), HasSubstr("Too many open files"));
  }
}

// Stands in for another thread of the program's.
ibv_pd* (*allocPd)(ibv_context*) = nullptr;
int leftOpen = -1;
ibv_pd* forkAndAllocPd(ibv_context* context) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(static_cast<int>(::fcntl(context->cmd_fd, F_GETFD) >= 0) +
            static_cast<int>(::fcntl(context->async_fd, F_GETFD) >= 0));
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  leftOpen = WEXITSTATUS(status);
  return allocPd(context);
}

TEST_F(VerbsPollerTest, AForkWhileADeviceIsOpenedLeavesTheChildNothing) {
  const Replaced forking(
      [](Api& api) { allocPd = std::exchange(api.allocPd, &forkAndAllocPd); });
  const Adapter adapter(attr_);
  EXPECT_EQ(leftOpen, 0);
}

// Else all of a host would interrupt the same processor.
TEST(VerbsVectorsTest, DevicesTakeDifferentCompletionVectors) {
  test::FakeVerbsConfig config;
  for (const int vectors : {1, 3}) {
    config.completionVectors = vectors;
    test::FakeVerbs fake(config);
    VerbsPoller one{attr()};
    VerbsPoller other{attr()};
    VerbsPoller third{attr()};
    for (VerbsPoller* poller : {&one, &other, &third}) {
      EXPECT_NE(poller->queues().reserve(1), nullptr);
    }
    EXPECT_EQ(fake.completionVectors().size(), static_cast<size_t>(vectors));
  }
}

}  // namespace
}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
