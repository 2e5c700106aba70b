// What a poller, its adapter and its queues ask of a device.
#include "transport/ibverbs/poller.h"

#include <gmock/gmock.h>

#include <cerrno>

#include "tests/support/fake_verbs/fake_verbs.h"
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

TEST_F(VerbsPollerTest, LessInlineDataIsAskedForWhereThatMayHelp) {
  VerbsPoller poller(attr_);
  for (const int error : {EINVAL, EOPNOTSUPP, ENOSYS, ENOMEM}) {
    fake_.fail(test::FakeCall::kCreateQp, error);
    const Endpoint endpoint(poller, shapeFor(poller.adapter(), 1));
    EXPECT_EQ(endpoint.shape().caps.copiedBytes,
              static_cast<size_t>(attr_.inlineBytes) / 2);
  }
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

}  // namespace
}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
