// How long the background thread dozes between two looks whether threads drive.
// Each look costs the one that it interrupts, so they become rarer where the
// thread has found nothing to do for a while. One thread.
#pragma once

#include <algorithm>
#include <chrono>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

class Dozing {
 public:
  using Cost = std::chrono::nanoseconds;

  std::chrono::milliseconds length() const { return isLong() ? long_ : kBrief; }
  bool isLong() const { return dozes_ == kUntilLong; }

  // A brief one is over, which has taken so much of the thread's processor
  // time.
  void took(Cost cost) {
    if (isLong()) {
      return;
    }
    least_ = dozes_ == 0 ? cost : std::min(least_, cost);
    if (++dozes_ == kUntilLong) {
      long_ = kLong * std::clamp<int64_t>(least_ / kCheap, 1, kMostTimesRarer);
    }
  }

  // There was something to do.
  void beBrief() { dozes_ = 0; }

 private:
  static constexpr std::chrono::milliseconds kBrief{1};
  static constexpr std::chrono::milliseconds kLong{4};
  static constexpr int kUntilLong = 8;
  // What it takes of a processor of its own. Emulated, it takes a tenth of each
  // millisecond, of ranks as of the thread: there looks become rarer still.
  static constexpr Cost kCheap{8000};
  static constexpr int64_t kMostTimesRarer = 16;

  int dozes_ = 0;  // since there was something to do, as far as they count
  Cost least_{0};
  std::chrono::milliseconds long_ = kLong;
};

}  // namespace transport::base
GLOO_NAMESPACE_END
