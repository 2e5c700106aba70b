// The lanes of a context, for tests that look into them.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "gloo/barrier.h"
#include "gloo/context.h"
#include "gloo/gather.h"
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

// All words of the memory that holds `inside`.
inline std::pair<std::atomic<uint64_t>*, size_t> wordsAround(
    const void* inside) {
  const auto at = reinterpret_cast<uintptr_t>(inside);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    size_t length = 0;
    const uintptr_t begin = std::stoull(line, &length, 16);
    const uintptr_t end = std::stoull(line.substr(length + 1), nullptr, 16);
    if (begin <= at && at < end) {
      return {reinterpret_cast<std::atomic<uint64_t>*>(begin),
              (end - begin) / sizeof(uint64_t)};
    }
  }
  return {};
}

// As an operation that does nothing would: on all ranks equally often.
inline internal::Lane& laneOf(const std::shared_ptr<Context>& context,
                              uint8_t prefix, uint32_t tag) {
  auto& channel = internal::Channel::of(Inside::transport(*context));
  internal::Direct& direct = *channel.direct();
  const auto entry = direct.enter(internal::tagOf(Slot::build(prefix, tag)),
                                  std::chrono::seconds(10));
  EXPECT_NE(entry.lane, nullptr);
  direct.goOn(*entry.lane);
  direct.leave(*entry.lane);
  return *entry.lane;
}

// Over the links, for which no lane is: the ones of two ranks, to rank 0. The
// other one does not wait.
inline std::array<int, 2> gatherOnes(const std::shared_ptr<Context>& context,
                                     uint32_t tag) {
  std::array<int, 2> all{};
  int own = 1;
  GatherOptions opts(context);
  opts.setInput(&own, 1);
  if (context->rank == 0) {
    opts.setOutput(all.data(), all.size());
  }
  opts.setRoot(0);
  opts.setTag(tag);
  gather(opts);
  return all;
}

// Keeps all four of them, so that other operations take the links. `tag`: the
// first of those that it uses. On all ranks alike.
class AllLanes {
 public:
  AllLanes(const std::shared_ptr<Context>& context, uint32_t tag)
      : direct_(*internal::Channel::of(Inside::transport(*context)).direct()) {
    // Each claims a lane that all have left, since they have come here.
    BarrierOptions opts(context);
    for (uint32_t i = 0; i < kLanes; i++) {
      opts.setTag(tag + i);
      barrier(opts);
    }
    for (uint32_t i = 0; i < kLanes; i++) {
      lanes_[i] = enter(tag + i).lane;
    }
  }
  ~AllLanes() {
    for (internal::Lane* lane : lanes_) {
      if (lane != nullptr) {
        direct_.leave(*lane);
      }
    }
  }
  AllLanes(const AllLanes&) = delete;
  AllLanes& operator=(const AllLanes&) = delete;

 private:
  static constexpr size_t kLanes = 4;

  internal::Direct::Entry enter(uint64_t tag) {
    const auto entry = direct_.enter(tag, std::chrono::seconds(10));
    EXPECT_NE(entry.lane, nullptr);
    direct_.goOn(*entry.lane);
    return entry;
  }

  internal::Direct& direct_;
  internal::Lane* lanes_[kLanes] = {};
};

}  // namespace test
GLOO_NAMESPACE_END
