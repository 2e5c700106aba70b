// A cable with faults, and messages over it.
#pragma once

#include <gtest/gtest.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "gloo/common/string.h"
#include "gloo/config.h"
#include "gloo/context.h"
#include "gloo/transport/unbound_buffer.h"
#include "tests/support/bytes.h"
#include "tests/support/shared_flag.h"
#include "transport/base/socket.h"

GLOO_NAMESPACE_BEGIN
namespace test {

// Within which a cable that is cut, or a port that is down, is known.
constexpr std::chrono::seconds kCutIsKnown(5);

// A counter of a device.
inline uint64_t numberIn(const std::string& file) {
  uint64_t number = 0;
  EXPECT_TRUE(std::ifstream(file) >> number) << file;
  return number;
}

// Packets that these devices have sent and that have not arrived at any of
// them.
inline int64_t missingOf(std::initializer_list<const char*> devices) {
  int64_t all = 0;
  for (const char* device : devices) {
    const auto packets = [device](const char* counter) {
      return static_cast<int64_t>(numberIn(MakeString(
          "/sys/class/infiniband/", device, "/ports/1/hw_counters/", counter)));
    };
    all += packets("sent_pkts") - packets("rcvd_pkts");
  }
  return all;
}

// An argument of faults.sh.
inline void fault(const std::string& what) {
  ASSERT_EQ(std::system(MakeString(FAULTS " ", what).c_str()), 0) << what;
}

// The port on this interface goes down (in one guest: both ports of the cable),
// without a process, which on a busy guest takes seconds to start.
inline void takeDown(const std::string& interface) {
  const transport::base::UniqueFd socket(
      ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  ASSERT_EQ(::ioctl(socket.get(), SIOCGIFFLAGS, &request), 0) << interface;
  request.ifr_flags = static_cast<short>(request.ifr_flags & ~IFF_UP);
  ASSERT_EQ(::ioctl(socket.get(), SIOCSIFFLAGS, &request), 0) << interface;
}

// One message in each direction between two ranks. Every byte of the other
// rank's is checked.
inline void exchange(Context& context, uint64_t number, size_t bytes) {
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

// Both end after the round in which both have said that they may.
inline void exchangeUntil(const SharedFlag& over, Context& context,
                          size_t bytes) {
  char out = 0;
  char in = 0;
  auto send = context.createUnboundBuffer(&out, 1);
  auto recv = context.createUnboundBuffer(&in, 1);
  for (uint64_t i = 1; out == 0 || in == 0; i++) {
    exchange(context, 2 * i, bytes);
    out = over.isSet() ? 1 : 0;
    send->send(1 - context.rank, 2 * i + 1);
    recv->recv(1 - context.rank, 2 * i + 1);
    recv->waitRecv();
    send->waitSend();
  }
}

}  // namespace test
GLOO_NAMESPACE_END
