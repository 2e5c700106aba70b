// Benchmarks of tagged messages between two ranks.
#include "benchmarks/benchmark/vectors.h"
#include "gloo/transport/unbound_buffer.h"
#include "gloo/types.h"

namespace benchmark {
namespace {

constexpr uint8_t kSlotPrefix = 0x40;  // the library's own end at 0x08

template <typename T>
class Messages : public VectorBenchmark<T> {
 public:
  explicit Messages(const Setup& setup)
      : VectorBenchmark<T>(setup),
        slot_(gloo::Slot::build(kSlotPrefix, 0)),
        out_(setup.context->createUnboundBuffer(this->addInput(this->elements_),
                                                this->elements_ * sizeof(T))),
        in_(setup.context->createUnboundBuffer(this->addOutput(this->elements_),
                                               this->elements_ * sizeof(T))) {}

 protected:
  const uint64_t slot_;
  std::unique_ptr<gloo::transport::UnboundBuffer> out_;
  std::unique_ptr<gloo::transport::UnboundBuffer> in_;
};

// Rank 2k sends to rank 2k + 1, which answers with its own vector.
template <typename T>
class RoundTrip : public Messages<T> {
 public:
  using Messages<T>::Messages;
  void run() override {
    if (peer() >= this->size()) {
      return;  // the last of an odd number of ranks
    }
    if (this->rank() % 2 == 0) {
      this->out_->send(peer(), this->slot_);
      this->in_->recv(peer(), this->slot_);
      this->in_->waitRecv();
      this->out_->waitSend();
    } else {
      this->in_->recv(peer(), this->slot_);
      this->in_->waitRecv();
      this->out_->send(peer(), this->slot_);
      this->out_->waitSend();
    }
  }

 protected:
  int peer() const { return this->rank() ^ 1; }
  void expect(Checker<T>& checker) const override {
    if (peer() < this->size()) {
      checker.isInput(this->results()[0], peer(), 0);
    }
  }
};

// To the right neighbour, from the left one, --messages times.
template <typename T, bool kWaitForEach>
class Stress : public Messages<T> {
 public:
  using Messages<T>::Messages;
  void run() override {
    const int right = (this->rank() + 1) % this->size();
    const int left = (this->rank() + this->size() - 1) % this->size();
    const int batch = kWaitForEach ? 1 : this->options_.messages;
    for (int done = 0; done < this->options_.messages; done += batch) {
      for (int i = 0; i < batch; i++) {
        this->in_->recv(left, this->slot_);
        this->out_->send(right, this->slot_);
      }
      for (int i = 0; i < batch; i++) {
        this->in_->waitRecv();
        this->out_->waitSend();
      }
    }
  }

 protected:
  void expect(Checker<T>& checker) const override {
    checker.isInput(this->results()[0],
                    (this->rank() + this->size() - 1) % this->size(), 0);
  }
};

Traffic bothWays(int, const Options&) { return {2, 0.5}; }
Traffic oneWay(int, const Options& options) {
  return {double(options.messages), 1};
}

}  // namespace

std::vector<Entry> messageBenchmarks() {
  return {{.name = "sendrecv_roundtrip",
           .help = "there and back between ranks 2k and 2k + 1",
           .makeFloat = make<RoundTrip<float>>,
           .makeHalf = make<RoundTrip<gloo::float16>>,
           .traffic = bothWays,
           .minRanks = 2},
          {.name = "sendrecv_stress",
           .help = "--messages to the right, each waited for",
           .makeFloat = make<Stress<float, true>>,
           .makeHalf = make<Stress<gloo::float16, true>>,
           .traffic = oneWay,
           .ownOptions = {"--messages"},
           .minRanks = 2},
          {.name = "isendirecv_stress",
           .help = "--messages to the right, all in flight at once",
           .makeFloat = make<Stress<float, false>>,
           .makeHalf = make<Stress<gloo::float16, false>>,
           .traffic = oneWay,
           .ownOptions = {"--messages"},
           .minRanks = 2}};
}

}  // namespace benchmark
