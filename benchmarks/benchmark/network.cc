#include "benchmarks/benchmark/network.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "gloo/barrier.h"
#include "gloo/math.h"
#include "gloo/transport/unbound_buffer.h"
#include "gloo/types.h"

namespace benchmark {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint8_t kSlotPrefix = 0x41;  // the library's own end at 0x08
constexpr size_t kShort = 8;
constexpr size_t kMedium = size_t{64} << 10;
constexpr size_t kLong = size_t{4} << 20;
constexpr int kBurst = 32;

// The median of several runs, in seconds.
double time(int runs, const std::function<void()>& before,
            const std::function<void()>& work) {
  std::vector<double> seconds;
  for (int i = 0; i <= runs; i++) {
    before();
    const auto start = Clock::now();
    work();
    const std::chrono::duration<double> spent = Clock::now() - start;
    if (i > 0) {  // the first warms up
      seconds.push_back(spent.count());
    }
  }
  std::nth_element(seconds.begin(), seconds.begin() + runs / 2, seconds.end());
  return seconds[size_t(runs) / 2];
}

// Messages to the right neighbour and from the left one.
class Ring {
 public:
  explicit Ring(const std::shared_ptr<gloo::Context>& context)
      : context_(context),
        slot_(gloo::Slot::build(kSlotPrefix, 0)),
        outgoing_(kLong),
        incoming_(kLong),
        out_(context->createUnboundBuffer(outgoing_.data(), kLong)),
        in_(context->createUnboundBuffer(incoming_.data(), kLong)) {}

  // Seconds for one message each way.
  double shift(size_t bytes, int runs) {
    return time(
        runs, [this] { barrier(); },
        [this, bytes] {
          post(bytes);
          wait();
        });
  }

  // Seconds for one message from an even rank to the next and a short answer; 0
  // for the last of an odd number of ranks.
  double oneWay(size_t bytes, int runs) {
    const int peer = context_->rank ^ 1;
    const double seconds = time(
        runs, [this] { barrier(); },
        [this, bytes, peer] {
          if (peer < context_->size) {
            send(peer, bytes);
          }
        });
    return peer < context_->size ? seconds : 0;
  }

  // Seconds per message of a burst, and of starting it.
  void burst(double* each, double* start) {
    *start = 1;
    const double all = time(
        20, [this] { barrier(); },
        [this, start] {
          const auto begin = Clock::now();
          for (int i = 0; i < kBurst; i++) {
            post(kShort);
          }
          const std::chrono::duration<double> spent = Clock::now() - begin;
          *start = std::min(*start, spent.count());
          for (int i = 0; i < kBurst; i++) {
            wait();
          }
        });
    *each = all / kBurst;
    *start /= 2 * kBurst;  // a send and a receive each
  }

 private:
  void send(int peer, size_t bytes) {
    const bool first = peer > context_->rank;
    in_->recv(peer, slot_, 0, first ? kShort : bytes);
    if (first) {
      out_->send(peer, slot_, 0, bytes);
    }
    in_->waitRecv();
    if (!first) {
      out_->send(peer, slot_, 0, kShort);
    }
    out_->waitSend();
  }
  void post(size_t bytes) {
    const int size = context_->size;
    in_->recv((context_->rank + size - 1) % size, slot_, 0, bytes);
    out_->send((context_->rank + 1) % size, slot_, 0, bytes);
  }
  void wait() {
    in_->waitRecv();
    out_->waitSend();
  }
  void barrier() {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }

  const std::shared_ptr<gloo::Context> context_;
  const uint64_t slot_;
  std::vector<char> outgoing_;
  std::vector<char> incoming_;
  const std::unique_ptr<gloo::transport::UnboundBuffer> out_;
  const std::unique_ptr<gloo::transport::UnboundBuffer> in_;
};

// Memory that is not all in a core's own caches, as in a collective.
void measureMemory(Network& network) {
  constexpr size_t kElements = size_t{1} << 20;
  std::vector<float> a(kElements, 1), b(kElements, 2), c(kElements);
  const double bytes = kElements * sizeof(float);
  const auto nothing = [] {};
  network.reducePerByte =
      time(20, nothing,
           [&] { gloo::sum<float>(c.data(), a.data(), b.data(), kElements); }) /
      bytes;
  network.copyPerByte =
      time(
          20, nothing,
          [&] { std::memcpy(c.data(), a.data(), kElements * sizeof(float)); }) /
      bytes;
}

// Lengths of segments, of which TCP likes those that are filled with its own.
size_t bestSegment(Contest& contest) {
  constexpr size_t kElements = size_t{1} << 20;
  const std::vector<size_t> candidates{65536,  131072, 196352,
                                       262144, 524288, 1048576};
  std::vector<std::shared_ptr<gloo::Context>> contexts;
  for (const size_t bytes : candidates) {
    contexts.push_back(
        contest.connect("GLOO_SEGMENT_BYTES", std::to_string(bytes)));
  }
  const auto us = contest.measure(*findBenchmark("new_allreduce_ring"),
                                  kElements, contexts);
  return candidates[size_t(std::min_element(us.begin(), us.end()) -
                           us.begin())];
}

}  // namespace

Network measureNetwork(Contest& contest, const Options& options) {
  Network network;
  Ring ring(contest.control());
  const double oneShort = ring.shift(kShort, 200);
  const double oneMedium = ring.oneWay(kMedium, 40);
  const double oneLong = ring.oneWay(kLong, 10);
  ring.burst(&network.gap, &network.overhead);
  measureMemory(network);
  network.gapPerByte =
      std::max(0.0, (oneLong - oneMedium) / double(kLong - kMedium));
  std::vector<double> values{
      oneShort,           network.gap,           network.overhead,
      network.gapPerByte, network.reducePerByte, network.copyPerByte};
  contest.addUp(values);
  for (double& value : values) {
    value /= options.size;
  }
  network.gap = values[1];
  // Of a message's way, at most a quarter is the work of each end.
  network.overhead = std::min(values[2], values[0] / 4);
  network.latency = values[0] - 2 * network.overhead;
  // Of those that took part.
  network.gapPerByte =
      std::max(1e-13, values[3] * options.size / (options.size / 2 * 2));
  network.reducePerByte = values[4];
  network.copyPerByte = values[5];
  network.segmentBytes = bestSegment(contest);
  return network;
}

}  // namespace benchmark
