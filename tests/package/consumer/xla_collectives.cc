// Collectives in the form of XLA's CPU backend: one at a time, always tag 0,
// complex numbers, deadlines of the wall clock, slots with a prefix of its own.
#include <chrono>
#include <complex>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "gloo/algorithm.h"
#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/broadcast.h"
#include "gloo/context.h"
#include "gloo/math.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/store.h"
#include "gloo/transport/tcp/device.h"
#include "gloo/transport/unbound_buffer.h"
#include "gloo/types.h"
#if HAVE_ALLGATHER
#include "gloo/allgather.h"
#endif
#if HAVE_REDUCE_SCATTER
#include "gloo/reduce_scatter.h"
#endif
#include "support/check.h"
#include "support/ranks.h"
#include "support/shared_table.h"

namespace {

constexpr uint8_t kPermutePrefix = 0x40;
constexpr std::chrono::seconds kTimeout{20};

class KeyValueStore final : public gloo::rendezvous::Store {
 public:
  explicit KeyValueStore(const std::string& directory) : table_(directory) {}

  void set(const std::string& key, const std::vector<char>& value) override {
    table_.put("gloo/" + key, value);
  }
  std::vector<char> get(const std::string& key) override {
    return table_.at("gloo/" + key);
  }
  void wait(const std::vector<std::string>& keys) override {
    wait(keys, kDefaultTimeout);
  }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override {
    for (const auto& key : keys) {
      table_.waitFor("gloo/" + key, timeout);
    }
  }

 private:
  SharedTable table_;
};

using Pointer = void (*)(void*, const void*, const void*, size_t);

template <typename T>
std::vector<T> allReduce(const std::shared_ptr<gloo::Context>& context,
                         const std::vector<T>& input, Pointer reduce) {
  std::vector<T> output(input.size());
  gloo::AllreduceOptions options(context);
  options.setInput(const_cast<T*>(input.data()), input.size());
  options.setOutput(output.data(), output.size());
  options.setReduceFunction(reduce);
  options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
  options.setTimeout(kTimeout);
  gloo::allreduce(options);
  return output;
}

template <typename T>
void checkAllReduce(const std::shared_ptr<gloo::Context>& context) {
  const int size = context->size;
  for (const size_t elements : {1, 7, 100000}) {
    const std::vector<T> input(elements, T(context->rank + 1));
    const auto pointer = static_cast<Pointer>(&gloo::sum<T>);
    for (const T& value : allReduce(context, input, pointer)) {
      CHECK(value == T(size * (size + 1) / 2));
    }
  }
}

void checkProducts(const std::shared_ptr<gloo::Context>& context) {
  using Complex = std::complex<float>;
  const std::vector<Complex> turn(33, Complex(0, 1));
  const auto product = static_cast<Pointer>(&gloo::product<Complex>);
  Complex expected(1, 0);
  for (int i = 0; i < context->size; i++) {
    expected *= Complex(0, 1);
  }
  for (const Complex& value : allReduce(context, turn, product)) {
    CHECK(value == expected);
  }
  const std::vector<int16_t> mine(33, static_cast<int16_t>(context->rank - 5));
  const auto least = static_cast<Pointer>(&gloo::min<int16_t>);
  for (const int16_t value : allReduce(context, mine, least)) {
    CHECK(value == -5);
  }
}

// Each rank sends to the next; the last sends to nobody, the first gets zeros.
void checkPermute(const std::shared_ptr<gloo::Context>& context) {
  const int rank = context->rank;
  std::vector<double> input(513, rank + 1.5);
  std::vector<double> output(513, -1);
  const size_t bytes = input.size() * sizeof(double);
  std::unique_ptr<gloo::transport::UnboundBuffer> in;
  std::unique_ptr<gloo::transport::UnboundBuffer> out;
  const auto slot = gloo::Slot::build(kPermutePrefix, 0);
  if (rank + 1 < context->size) {
    in = context->createUnboundBuffer(input.data(), bytes);
    in->send(rank + 1, slot);
  }
  if (rank > 0) {
    out = context->createUnboundBuffer(output.data(), bytes);
    out->recv(rank - 1, slot);
  } else {
    std::memset(output.data(), 0, bytes);
  }
  const auto deadline = std::chrono::system_clock::now() + kTimeout;
  if (in) {
    in->waitSend(deadline);
  }
  if (out) {
    out->waitRecv(deadline);
  }
  CHECK(output == std::vector<double>(513, rank > 0 ? rank + 0.5 : 0));
}

// Separate pieces of memory, so not by alltoall: by a buffer for each peer.
void checkAllToAll(const std::shared_ptr<gloo::Context>& context) {
  const int rank = context->rank;
  const int size = context->size;
  std::vector<std::vector<int>> in(size, std::vector<int>(100));
  std::vector<std::vector<int>> out(size, std::vector<int>(100));
  std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> ins(size);
  std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> outs(size);
  const auto slot = gloo::Slot::build(gloo::kAlltoallSlotPrefix, 0);
  for (int i = 0; i < size; i++) {
    in[i].assign(100, rank * size + i);
    if (i != rank) {
      ins[i] = context->createUnboundBuffer(in[i].data(), 400);
      outs[i] = context->createUnboundBuffer(out[i].data(), 400);
    }
  }
  for (int i = 1; i < size; i++) {
    ins[(rank + i) % size]->send((rank + i) % size, slot);
    outs[(rank + size - i) % size]->recv((rank + size - i) % size, slot);
  }
  const auto deadline = std::chrono::system_clock::now() + kTimeout;
  for (int i = 0; i < size; i++) {
    if (i != rank) {
      ins[i]->waitSend(nullptr, gloo::transport::kUnsetTimeout);
      outs[i]->waitRecv(deadline);
      CHECK(out[i] == std::vector<int>(100, i * size + rank));
    }
  }
}

void checkBroadcast(const std::shared_ptr<gloo::Context>& context) {
  std::vector<float> input(64, 2.5f);
  std::vector<float> output(64);
  gloo::BroadcastOptions options(context);
  options.setRoot(0);
  options.setTimeout(kTimeout);
  if (context->rank == 0) {
    options.setInput(input.data(), input.size());
  }
  options.setOutput(output.data(), output.size());
  gloo::broadcast(options);
  CHECK(output == input);
}

#if HAVE_ALLGATHER
void checkAllGather(const std::shared_ptr<gloo::Context>& context) {
  std::vector<char> mine(77, static_cast<char>(context->rank));
  std::vector<char> all(77 * context->size);
  gloo::AllgatherOptions options(context);
  options.setTimeout(kTimeout);
  options.setInput(mine.data(), mine.size());
  options.setOutput(all.data(), all.size());
  gloo::allgather(options);
  for (size_t i = 0; i < all.size(); i++) {
    CHECK(all[i] == static_cast<char>(i / 77));
  }
}
#endif

#if HAVE_REDUCE_SCATTER
enum class Kind { kSum, kProduct, kLeast, kMost };

template <typename T>
constexpr bool kIsComplex = std::is_same_v<T, std::complex<float>> ||
                            std::is_same_v<T, std::complex<double>>;

// Names least and most only where T has them.
template <typename T>
void reduceScatter(const std::shared_ptr<gloo::Context>& context, Kind kind,
                   void* buffer, size_t chunk) {
  const gloo::ReductionFunction<T>* function = nullptr;
  if constexpr (kIsComplex<T>) {
    CHECK(kind == Kind::kSum || kind == Kind::kProduct);
    function = kind == Kind::kSum ? gloo::ReductionFunction<T>::sum
                                  : gloo::ReductionFunction<T>::product;
  } else {
    switch (kind) {
      case Kind::kSum:
        function = gloo::ReductionFunction<T>::sum;
        break;
      case Kind::kProduct:
        function = gloo::ReductionFunction<T>::product;
        break;
      case Kind::kLeast:
        function = gloo::ReductionFunction<T>::min;
        break;
      case Kind::kMost:
        function = gloo::ReductionFunction<T>::max;
        break;
    }
  }
  const std::vector<int> counts(context->size, static_cast<int>(chunk));
  const std::vector<T*> ptrs{static_cast<T*>(buffer)};
  gloo::ReduceScatterHalvingDoubling<T> algorithm(
      context, ptrs, static_cast<int>(chunk * context->size), counts, function);
  algorithm.run();
}

// Every rank's vector is all `mine`.
template <typename T>
void checkReduceScatterOf(const std::shared_ptr<gloo::Context>& context,
                          Kind kind, T mine, T expected) {
  constexpr size_t kChunk = 50;
  std::vector<T> work(kChunk * context->size, mine);
  reduceScatter<T>(context, kind, work.data(), kChunk);
  for (size_t i = 0; i < kChunk; i++) {
    CHECK(work[i] == expected);
  }
}

template <typename T>
void checkComplexReduceScatter(const std::shared_ptr<gloo::Context>& context) {
  const int size = context->size;
  T turned(1);
  for (int i = 0; i < size; i++) {
    turned *= T(0, 1);
  }
  checkReduceScatterOf<T>(context, Kind::kSum, T(1, -2), T(size, -2 * size));
  checkReduceScatterOf<T>(context, Kind::kProduct, T(0, 1), turned);
}

void checkReduceScatters(const std::shared_ptr<gloo::Context>& context) {
  const int size = context->size;
  const int rank = context->rank;
  checkComplexReduceScatter<std::complex<float>>(context);
  checkComplexReduceScatter<std::complex<double>>(context);
  checkReduceScatterOf<int16_t>(context, Kind::kProduct, 2,
                                static_cast<int16_t>(1 << size));
  checkReduceScatterOf<double>(context, Kind::kLeast, rank + 1, 1);
  checkReduceScatterOf<uint8_t>(context, Kind::kMost,
                                static_cast<uint8_t>(rank),
                                static_cast<uint8_t>(size - 1));
}

void checkReduceScatter(const std::shared_ptr<gloo::Context>& context) {
  const int size = context->size;
  constexpr int kChunk = 50;
  std::vector<float> work(kChunk * size);
  for (size_t i = 0; i < work.size(); i++) {
    work[i] = static_cast<float>(i / kChunk);
  }
  static const gloo::ReductionFunction<float> sum(gloo::ReductionType::SUM,
                                                  &gloo::sum<float>);
  gloo::ReduceScatterHalvingDoubling<float> algorithm(
      context, std::vector<float*>{work.data()}, kChunk * size,
      std::vector<int>(size, kChunk), &sum);
  algorithm.run();
  for (int i = 0; i < kChunk; i++) {
    CHECK(work[i] == static_cast<float>(context->rank * size));
  }
}
#endif

void job(int rank, int size, const std::string& directory) {
  auto device = gloo::transport::tcp::CreateDevice(
      gloo::transport::tcp::attr("localhost"));
  auto store = std::make_shared<KeyValueStore>(directory);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
#if defined(GLOO_SHARED_STORE)
  context->connectFullMesh(store, device);
#else
  context->connectFullMesh(*store, device);
#endif
  for (int round = 0; round < 3; round++) {
    checkAllReduce<int8_t>(context);
    checkAllReduce<uint16_t>(context);
    checkAllReduce<int64_t>(context);
    checkAllReduce<double>(context);
    checkAllReduce<std::complex<double>>(context);
    checkProducts(context);
    checkPermute(context);
    checkAllToAll(context);
    checkBroadcast(context);
#if HAVE_ALLGATHER
    checkAllGather(context);
#endif
#if HAVE_REDUCE_SCATTER
    checkReduceScatter(context);
    checkReduceScatters(context);
#endif
  }
  gloo::BarrierOptions options(context);
  gloo::barrier(options);
}

}  // namespace

int main() {
  bool good = true;
  for (const int size : {2, 3, 4}) {
    good = runProcesses(size, job) && good;
  }
  return good ? 0 : 1;
}
