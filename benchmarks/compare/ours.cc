// This library, measured as its users call it.
#include <array>
#include <cstdio>
#include <exception>
#include <memory>

#include "benchmarks/support/device.h"
#include "benchmarks/support/links.h"
#include "gloo/allgather.h"
#include "gloo/allreduce.h"
#include "gloo/allreduce_halving_doubling.h"
#include "gloo/alltoall.h"
#include "gloo/barrier.h"
#include "gloo/broadcast.h"
#include "gloo/math.h"
#include "gloo/reduce.h"
#include "gloo/reduce_scatter.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/transport/buffer.h"
#include "gloo/transport/pair.h"
#include "gloo/transport/shm/allocate.h"
#include "gloo/transport/unbound_buffer.h"
#include "measure.h"
#include "pingpong.h"

namespace {

using measure::Operation;
using measure::Work;

void (*const kSum)(void*, const void*, const void*, size_t) = &gloo::sum<float>;

// Of a pingpong through either kind of buffer; the first has asked for what
// comes when it is made.
struct Bound {
  std::shared_ptr<gloo::transport::Buffer> in;
  std::shared_ptr<gloo::transport::Buffer> out;
  size_t bytes;

  void expect() const {}
  void send() const { out->send(0, bytes); }
  void receive() const { in->waitRecv(); }
  void finish() const { out->waitSend(); }
};

struct Unbound {
  std::shared_ptr<gloo::transport::UnboundBuffer> in;
  std::shared_ptr<gloo::transport::UnboundBuffer> out;
  int peer;
  uint64_t slot;

  void expect() const { in->recv(peer, slot); }
  void send() const { out->send(peer, slot); }
  void receive() const { in->waitRecv(); }
  void finish() const { out->waitSend(); }
};

class Ours : public measure::Program {
 public:
  explicit Ours(const measure::Arguments& arguments)
      : mode_(arguments.mode.empty() ? "default" : arguments.mode),
        registers_(arguments.transport == "ibverbs"),
        device_(support::makeDevice(arguments.transport, arguments.device)),
        context_(std::make_shared<support::MeasuredContext>(arguments.rank,
                                                            arguments.size)) {
    auto store =
        std::make_shared<gloo::rendezvous::FileStore>(arguments.directory);
    context_->connectFullMesh(store, device_);
    for (int i = 0; mode_ == "busy" && i < arguments.size; i++) {
      if (i != arguments.rank) {
        context_->getPair(i)->setSync(true, true);
      }
    }
  }

  // Prepared: memory stays registered, as that of libgloo's classes does.
  std::vector<std::string> modes(const std::string& collective) override {
    if (registers_ && collective == "allreduce") {
      return {mode_, mode_ + " prepared"};
    }
    if (collective == "pingpong") {
      return {mode_ + kBound, mode_ + " unbound"};
    }
    return {mode_};
  }

  // shared: from the shared allocator.
  float* allocate(int index, size_t bytes) override {
    if (mode_ != "shared") {
      return Program::allocate(index, bytes);
    }
    gloo::transport::shm::Memory& memory = memory_.at(size_t(index));
    memory = gloo::transport::shm::allocate(bytes);
    return static_cast<float*>(memory.data());
  }

  Operation prepare(const Work& work, const std::string& mode) override {
    const std::string& name = work.collective;
    if (name == "pingpong") {
      return mode == mode_ + kBound ? boundPingPong(work)
                                    : unboundPingPong(work);
    }
    if (mode != mode_) {
      auto allreduce = std::make_shared<gloo::AllreduceHalvingDoubling<float>>(
          context_, std::vector<float*>{work.output},
          static_cast<int>(work.outputElements));
      return [allreduce] { allreduce->run(); };
    }
    if (name == "allreduce") {
      auto options = outputOf<gloo::AllreduceOptions>(work);
      options->setReduceFunction(kSum);
      return [options] { gloo::allreduce(*options); };
    }
    if (name == "reduce") {
      auto options = bothOf<gloo::ReduceOptions>(work);
      options->setRoot(0);
      options->setReduceFunction(kSum);
      return [options] { gloo::reduce(*options); };
    }
    if (name == "broadcast") {
      auto options = outputOf<gloo::BroadcastOptions>(work);
      options->setRoot(0);
      return [options] { gloo::broadcast(*options); };
    }
    if (name == "allgather") {
      auto options = bothOf<gloo::AllgatherOptions>(work);
      return [options] { gloo::allgather(*options); };
    }
    if (name == "reduce_scatter") {
      auto options = bothOf<gloo::ReduceScatterOptions>(work);
      options->setReduceFunction(kSum);
      return [options] { gloo::reduce_scatter(*options); };
    }
    if (name == "alltoall") {
      auto options = bothOf<gloo::AlltoallOptions>(work);
      return [options] { gloo::alltoall(*options); };
    }
    auto options = std::make_shared<gloo::BarrierOptions>(context_);
    return [options] { gloo::barrier(*options); };
  }

  std::string links() override { return support::join(context_->links(), '+'); }

 private:
  static constexpr char kBound[] = " bound";

  Operation boundPingPong(const Work& work) {
    const int slot = nextSlot_++;
    const bool first = context_->rank == 0;
    gloo::transport::Pair& pair = *context_->getPair(first ? 1 : 0);
    return measure::pingPong(
        work, first,
        Bound{pair.createRecvBuffer(slot, work.output, work.bytes),
              pair.createSendBuffer(slot, first ? work.input : work.output,
                                    work.bytes),
              work.bytes});
  }

  Operation unboundPingPong(const Work& work) {
    const auto slot = static_cast<uint64_t>(nextSlot_++);
    const bool first = context_->rank == 0;
    const std::shared_ptr<gloo::transport::UnboundBuffer> in =
        context_->createUnboundBuffer(work.output, work.bytes);
    return measure::pingPong(
        work, first,
        Unbound{
            in,
            first ? context_->createUnboundBuffer(work.input, work.bytes) : in,
            first ? 1 : 0, slot});
  }

  template <typename Options>
  std::shared_ptr<Options> outputOf(const Work& work) {
    auto options = std::make_shared<Options>(context_);
    options->setOutput(work.output, work.outputElements);
    return options;
  }
  template <typename Options>
  std::shared_ptr<Options> bothOf(const Work& work) {
    auto options = outputOf<Options>(work);
    options->setInput(work.input, work.inputElements);
    return options;
  }

  const std::string mode_;
  const bool registers_;
  int nextSlot_ = 0;
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<support::MeasuredContext> context_;
  std::array<gloo::transport::shm::Memory, 2> memory_;
};

}  // namespace

int main(int argc, char** argv) {
  const auto arguments =
      measure::parse(argc, argv, {"default", "busy", "shared"});
  try {
    Ours program(arguments);
    return measure::run(program, arguments);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rank %d: %s\n", arguments.rank, e.what());
    return 1;
  }
}
