#include "gloo/common/deadline.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <memory>
#include <vector>

#include "gloo/transport/unbound_buffer.h"

GLOO_NAMESPACE_BEGIN
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::system_clock;
using Steady = std::chrono::steady_clock;

TEST(Deadline, OfTheFarPastHasNothingLeft) {
  const Deadline past(Steady::time_point::min());
  EXPECT_TRUE(past.expired());
  EXPECT_EQ(past.left(), milliseconds::zero());
}

// Keeps the deadline that a wait is given.
class WaitingBuffer final : public transport::UnboundBuffer {
 public:
  WaitingBuffer() : UnboundBuffer(nullptr, 0) {}
  using UnboundBuffer::waitRecv;
  using UnboundBuffer::waitSend;
  bool waitRecv(int*, milliseconds) override { return true; }
  bool waitSend(int*, milliseconds) override { return true; }
  bool waitRecv(Steady::time_point at) override { return wait(at); }
  bool waitSend(Steady::time_point at) override { return wait(at); }
  void abortWaitRecv() override {}
  void abortWaitSend() override {}
  void send(int, uint64_t, size_t, size_t) override {}
  void recv(int, uint64_t, size_t, size_t) override {}
  void recv(std::vector<int>, uint64_t, size_t, size_t) override {}
  std::unique_ptr<transport::RemoteKey> getRemoteKey() const override {
    return nullptr;
  }
  void put(const transport::RemoteKey&, uint64_t, size_t, size_t,
           size_t) override {}
  void get(const transport::RemoteKey&, uint64_t, size_t, size_t,
           size_t) override {}

  template <typename TimePoint>
  Deadline given(TimePoint deadline) {
    waitRecv(deadline);
    const Steady::time_point received = at_;
    waitSend(deadline);
    EXPECT_LT(at_ - received, seconds(60));
    return Deadline(at_);
  }

 private:
  bool wait(Steady::time_point at) {
    at_ = at;
    return true;
  }
  Steady::time_point at_;
};

TEST(UnboundBuffer, ADeadlineOfAnotherClockIsTheSameMoment) {
  WaitingBuffer buffer;
  const auto isAbout = [](milliseconds left, milliseconds wanted) {
    return left <= wanted + milliseconds(1) && left > wanted - seconds(30);
  };
  const auto now = system_clock::now();
  EXPECT_TRUE(isAbout(buffer.given(now + seconds(100)).left(), seconds(100)));
  const auto inHours = std::chrono::hours(1000);
  EXPECT_TRUE(isAbout(buffer.given(now + inHours).left(), inHours));
  EXPECT_TRUE(isAbout(
      buffer
          .given(std::chrono::time_point_cast<std::chrono::duration<double>>(
              now + seconds(50)))
          .left(),
      seconds(50)));
  EXPECT_TRUE(buffer.given(now - seconds(1)).expired());
}

TEST(UnboundBuffer, TheExtremesOfAClockAreNeverAndThePast) {
  WaitingBuffer buffer;
  using Seconds = std::chrono::time_point<system_clock, seconds>;
  using Doubles =
      std::chrono::time_point<system_clock, std::chrono::duration<double>>;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(buffer.given(system_clock::time_point::max()).never());
  EXPECT_TRUE(buffer.given(Seconds::max()).never());
  EXPECT_TRUE(buffer.given(Doubles(Doubles::duration(kInfinity))).never());
  EXPECT_TRUE(buffer.given(system_clock::time_point::min()).expired());
  EXPECT_TRUE(buffer.given(system_clock::time_point()).expired());
  EXPECT_TRUE(buffer.given(Seconds::min()).expired());
  EXPECT_TRUE(buffer.given(Doubles(Doubles::duration(-kInfinity))).expired());
}

}  // namespace
GLOO_NAMESPACE_END
