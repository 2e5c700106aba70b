// Algorithms of the caller's own on the library's base class, and reduction
// functions of the caller's own in the library's algorithms.
#include <memory>
#include <string>
#include <vector>

#include "gloo/algorithm.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/rendezvous/prefix_store.h"
#include "gloo/transport/tcp/device.h"
#if HAVE_ALLREDUCE_RING
#include "gloo/allreduce_ring.h"
#endif
#if HAVE_ALLREDUCE_RING_CHUNKED
#include "gloo/allreduce_ring_chunked.h"
#endif
#if HAVE_ALLREDUCE_HALVING_DOUBLING
#include "gloo/allreduce_halving_doubling.h"
#endif
#if HAVE_BROADCAST_ONE_TO_ALL
#include "gloo/broadcast_one_to_all.h"
#endif
#if HAVE_BARRIER_ALL_TO_ALL
#include "gloo/barrier_all_to_all.h"
#endif
#if HAVE_ALLGATHER_RING
#include "gloo/allgather_ring.h"
#endif
#include "support/check.h"
#include "support/ranks.h"

namespace {

// Passes the whole vector round the ring and adds what arrives.
template <typename T>
class RotateAndAdd : public gloo::Algorithm {
 public:
  RotateAndAdd(
      const std::shared_ptr<gloo::Context>& context, std::vector<T>& data,
      const gloo::ReductionFunction<T>* fn = gloo::ReductionFunction<T>::sum)
      : gloo::Algorithm(context),
        data_(data),
        out_(data.size()),
        in_(data.size()),
        fn_(fn) {
    const int slot = this->context_->nextSlot();
    const int noteSlot = this->context_->nextSlot();
    const size_t bytes = data.size() * sizeof(T);
    auto& left = this->getLeftPair();
    auto& right = this->getRightPair();
    send_ = left->createSendBuffer(slot, out_.data(), bytes);
    recv_ = right->createRecvBuffer(slot, in_.data(), bytes);
    noteOut_ = right->createSendBuffer(noteSlot, &note_, sizeof(note_));
    noteIn_ = left->createRecvBuffer(noteSlot, &note_, sizeof(note_));
  }

  void run() override {
    out_ = data_;
    for (int round = 1; round < this->contextSize_; round++) {
      send_->send();
      recv_->waitRecv();
      fn_->call(data_.data(), in_.data(), data_.size());
      send_->waitSend();
      out_ = in_;
      noteOut_->send();
      noteIn_->waitRecv();
      noteOut_->waitSend();
    }
  }

 private:
  std::vector<T>& data_;
  std::vector<T> out_;
  std::vector<T> in_;
  const gloo::ReductionFunction<T>* fn_;
  int note_ = 0;
  std::unique_ptr<gloo::transport::Buffer> send_;
  std::unique_ptr<gloo::transport::Buffer> recv_;
  std::unique_ptr<gloo::transport::Buffer> noteOut_;
  std::unique_ptr<gloo::transport::Buffer> noteIn_;
};

// Uses what the base class keeps for itself.
class OwnContext : public gloo::rendezvous::Context {
 public:
  using gloo::rendezvous::Context::Context;

  int takeTwo() {
    const auto first = slot_;
    slot_ += 2;
    return first;
  }
  bool isPatient() const {
    const auto limit = timeout_;
    return timeout_ == gloo::kNoTimeout || limit.count() > 1000;
  }
};

// A type that the library has never heard of.
struct Money {
  long cents = 0;
};

void addMoney(Money* a, const Money* b, size_t n) {
  for (size_t i = 0; i < n; i++) {
    a[i].cents += b[i].cents;
  }
}

using ContextPtr = std::shared_ptr<gloo::Context>;

void checkOwnAlgorithm(const ContextPtr& context) {
  std::vector<float> data(100);
  RotateAndAdd<float> algorithm(context, data);
  RotateAndAdd<float> greatest(context, data,
                               gloo::ReductionFunction<float>::max);
  const int size = context->size;
  for (int i = 0; i < 5; i++) {
    data.assign(100, context->rank + 0.5f);
    algorithm.run();
    CHECK(data == std::vector<float>(100, size * size / 2.0f));
    data.assign(100, context->rank + 0.5f);
    greatest.run();
    CHECK(data == std::vector<float>(100, size - 0.5f));
  }
}

void checkForeignType(const ContextPtr& context) {
  const gloo::ReductionFunction<Money> add(gloo::ReductionType::CUSTOM,
                                           &addMoney);
  CHECK(add.type() == gloo::CUSTOM);
  std::vector<Money> data(10);
  RotateAndAdd<Money> algorithm(context, data, &add);
  data[9].cents = 100;
  algorithm.run();
  for (size_t i = 0; i < data.size(); i++) {
    CHECK(data[i].cents == (i == 9 ? 100 * context->size : 0));
  }
}

template <typename Algorithm>
[[maybe_unused]] void checkSum(const ContextPtr& context) {
  for (const int count : {1, 100, 50001}) {
    std::vector<int> first(count);
    std::vector<int> second(count);
    Algorithm algorithm(context, {first.data(), second.data()}, count);
    for (int i = 0; i < 3; i++) {
      first.assign(count, context->rank);
      second.assign(count, 1);
      algorithm.run();
      const int size = context->size;
      CHECK(first == std::vector<int>(count, size * (size + 1) / 2));
      CHECK(second == first);
    }
  }
}

void checkLibraryClasses(const ContextPtr& context) {
#if HAVE_ALLREDUCE_RING
  checkSum<gloo::AllreduceRing<int>>(context);
#endif
#if HAVE_ALLREDUCE_RING_CHUNKED
  checkSum<gloo::AllreduceRingChunked<int>>(context);
#endif
#if HAVE_ALLREDUCE_HALVING_DOUBLING
  checkSum<gloo::AllreduceHalvingDoubling<int>>(context);
#endif
#if HAVE_BROADCAST_ONE_TO_ALL
  std::vector<double> data(321, context->rank);
  gloo::BroadcastOneToAll<double> broadcast(context, {data.data()}, data.size(),
                                            1);
  broadcast.run();
  CHECK(data == std::vector<double>(321, 1));
#endif
#if HAVE_ALLGATHER_RING
  std::vector<short> mine(40, static_cast<short>(context->rank));
  std::vector<short> all(40 * context->size, -1);
  gloo::AllgatherRing<short> allgather(
      context, std::vector<const short*>{mine.data()}, all.data(), 40);
  allgather.run();
  for (size_t i = 0; i < all.size(); i++) {
    CHECK(all[i] == static_cast<short>(i / 40));
  }
#endif
#if HAVE_BARRIER_ALL_TO_ALL
  gloo::BarrierAllToAll barrier(context);
  barrier.run();
#else
  (void)context;
#endif
}

void job(int rank, int size, const std::string& directory) {
  auto device = gloo::transport::tcp::CreateDevice("localhost");
  gloo::rendezvous::FileStore files(directory);
  gloo::rendezvous::PrefixStore store("own", files);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->connectFullMesh(store, device);
  checkOwnAlgorithm(context);
  checkForeignType(context);
  checkLibraryClasses(context);
  leaveTogether(store, rank, size);
}

}  // namespace

int main() {
  bool good = true;
  for (const int size : {2, 3, 4}) {
    good = runProcesses(size, job) && good;
  }
  return good ? 0 : 1;
}
