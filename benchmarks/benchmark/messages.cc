// Benchmarks of tagged messages between two ranks.
#include "benchmarks/benchmark/vectors.h"
#include "gloo/transport/unbound_buffer.h"
#include "gloo/types.h"

namespace benchmark {
namespace {

constexpr uint8_t kSlotPrefix = 0x40;  // the library's own end at 0x08

class Messages : public VectorBenchmark<float> {
 public:
  explicit Messages(const Setup& setup)
      : VectorBenchmark(setup),
        slot_(gloo::Slot::build(kSlotPrefix, 0)),
        out_(setup.context->createUnboundBuffer(addInput(elements_),
                                                elements_ * sizeof(float))),
        in_(setup.context->createUnboundBuffer(addOutput(elements_),
                                               elements_ * sizeof(float))) {}

 protected:
  const uint64_t slot_;
  std::unique_ptr<gloo::transport::UnboundBuffer> out_;
  std::unique_ptr<gloo::transport::UnboundBuffer> in_;
};

// Rank 2k sends to rank 2k + 1, which answers with its own vector.
class RoundTrip : public Messages {
 public:
  using Messages::Messages;
  void run() override {
    if (peer() >= size()) {
      return;  // the last of an odd number of ranks
    }
    if (rank() % 2 == 0) {
      out_->send(peer(), slot_);
      in_->recv(peer(), slot_);
      in_->waitRecv();
      out_->waitSend();
    } else {
      in_->recv(peer(), slot_);
      in_->waitRecv();
      out_->send(peer(), slot_);
      out_->waitSend();
    }
  }

 protected:
  int peer() const { return rank() ^ 1; }
  void expect(Checker<float>& checker) const override {
    if (peer() < size()) {
      checker.isInput(results()[0], peer(), 0);
    }
  }
};

// To the right neighbour, from the left one, --messages times.
template <bool kWaitForEach>
class Stress : public Messages {
 public:
  using Messages::Messages;
  void run() override {
    const int right = (rank() + 1) % size();
    const int left = (rank() + size() - 1) % size();
    const int batch = kWaitForEach ? 1 : options_.messages;
    for (int done = 0; done < options_.messages; done += batch) {
      for (int i = 0; i < batch; i++) {
        in_->recv(left, slot_);
        out_->send(right, slot_);
      }
      for (int i = 0; i < batch; i++) {
        in_->waitRecv();
        out_->waitSend();
      }
    }
  }

 protected:
  void expect(Checker<float>& checker) const override {
    checker.isInput(results()[0], (rank() + size() - 1) % size(), 0);
  }
};

Traffic bothWays(int) { return {2, 0.5}; }
Traffic oneWay(int) { return {1, 1}; }

}  // namespace

std::vector<Entry> messageBenchmarks() {
  return {{.name = "sendrecv_roundtrip",
           .help = "there and back between ranks 2k and 2k + 1",
           .makeFloat = make<RoundTrip>,
           .traffic = bothWays,
           .minRanks = 2},
          {.name = "sendrecv_stress",
           .help = "--messages to the right, each waited for",
           .makeFloat = make<Stress<true>>,
           .traffic = oneWay,
           .minRanks = 2},
          {.name = "isendirecv_stress",
           .help = "--messages to the right, all in flight at once",
           .makeFloat = make<Stress<false>>,
           .traffic = oneWay,
           .minRanks = 2}};
}

}  // namespace benchmark
