// The lanes of a context, for tests that look into them.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "gloo/context.h"
#include "gloo/internal/channel.h"
#include "gloo/internal/check.h"
#include "gloo/internal/direct.h"
#include "gloo/types.h"

GLOO_NAMESPACE_BEGIN
namespace test {

// Sees what a context keeps to itself.
struct Inside : Context {
  static transport::Context& transport(Context& context) {
    return *(context.*(&Inside::transportContext_));
  }
};

// As an operation that does nothing would: on all ranks equally often.
inline internal::Lane& laneOf(const std::shared_ptr<Context>& context,
                              uint8_t prefix, uint32_t tag) {
  auto& channel = internal::Channel::of(Inside::transport(*context));
  internal::Direct& direct = *channel.direct();
  const auto entry = direct.enter(internal::tagOf(Slot::build(prefix, tag)),
                                  std::chrono::seconds(10));
  EXPECT_NE(entry.lane, nullptr);
  direct.leave(*entry.lane);
  return *entry.lane;
}

}  // namespace test
GLOO_NAMESPACE_END
