// Strangers must not fill the log. One thread.
#pragma once

#include <chrono>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// Five messages in ten seconds.
class RateLimit {
 public:
  bool allows(std::chrono::steady_clock::time_point now) {
    if (now - since_ > std::chrono::seconds(10)) {
      since_ = now;
      count_ = 0;
    }
    return ++count_ <= 5;
  }

 private:
  std::chrono::steady_clock::time_point since_{};
  int count_ = 0;
};

}  // namespace transport::base
GLOO_NAMESPACE_END
