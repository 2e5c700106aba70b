#include "rendezvous/retry.h"

#include <gtest/gtest.h>

namespace gloo_test {

namespace {

using gloo::Deadline;

TEST(RetryTest, WhoTriesWithoutALimitIsToldOfNone) {
  const Deadline answer =
      Deadline::after(gloo::rendezvous::kSilentTries + std::chrono::seconds(1));
  testing::internal::CaptureStderr();
  gloo::rendezvous::retryUntil(Deadline(), "the server", "", [&] {
    if (!answer.expired()) {
      throw gloo::rendezvous::TransientError("not there");
    }
  });
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("not there; trying again\n"), std::string::npos) << text;
}

}  // namespace

}  // namespace gloo_test
