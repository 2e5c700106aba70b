// A cable with faults, and messages over it.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gloo/common/string.h"
#include "gloo/config.h"
#include "gloo/context.h"
#include "gloo/transport/unbound_buffer.h"
#include "tests/support/bytes.h"

GLOO_NAMESPACE_BEGIN
namespace test {

// Within which a cable that is cut, or a port that is down, is known.
constexpr std::chrono::seconds kCutIsKnown(5);

// A counter of a device.
inline uint64_t numberIn(const std::string &file) {
  uint64_t number = 0;
  EXPECT_TRUE(std::ifstream(file) >> number) << file;
  return number;
}

// An argument of faults.sh.
inline void fault(const std::string &what) {
  ASSERT_EQ(std::system(MakeString(FAULTS " ", what).c_str()), 0) << what;
}

// One message in each direction between two ranks. Every byte of the other
// rank's is checked.
inline void exchange(Context &context, uint64_t number, size_t bytes) {
  const int peer = 1 - context.rank;
  auto out = pattern(2 * number + static_cast<uint64_t>(context.rank), bytes);
  std::vector<char> in(bytes);
  auto send = context.createUnboundBuffer(out.data(), bytes);
  auto recv = context.createUnboundBuffer(in.data(), bytes);
  recv->recv(peer, number);
  send->send(peer, number);
  recv->waitRecv();
  send->waitSend();
  const uint64_t seed = 2 * number + static_cast<uint64_t>(peer);
  ASSERT_EQ(mismatch(seed, in.data(), bytes), bytes) << "message " << number;
}

} // namespace test
GLOO_NAMESPACE_END
