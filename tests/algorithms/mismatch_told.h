// For tests of ranks that disagree.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "gloo/barrier.h"
#include "gloo/common/error.h"
#include "gloo/common/string.h"
#include "gloo/context.h"
#include "tests/support/process_group.h"

GLOO_NAMESPACE_BEGIN
namespace test {

// What this rank is told of the mismatch: by the call, or, where that was over
// before, by what comes next. Within a second, or it is no pass.
inline std::string mismatchTold(const std::shared_ptr<Context>& context,
                                const std::function<void()>& call) {
  std::string text = "no error";
  auto start = now();
  try {
    barrier(BarrierOptions(context));  // nobody still connects
    start = now();
    call();
    const auto limit = start + std::chrono::seconds(2) * slowness();
    while (now() < limit) {
      context->createUnboundBuffer(nullptr, 0);
      std::this_thread::yield();
    }
  } catch (const MismatchException& e) {
    text = e.what();
  } catch (const std::exception& e) {
    text = MakeString("another error: ", e.what());
  }
  EXPECT_LT(now() - start, std::chrono::seconds(1) * slowness());
  return text;
}

}  // namespace test
GLOO_NAMESPACE_END
