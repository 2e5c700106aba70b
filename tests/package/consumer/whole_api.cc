// Every public header, together in one program, and what their templates are
// made of: the callers' own types, buffers and classes derived from ours. This
// is what a language standard may change; it is compiled as each that callers
// use.
#include <algorithm>
#include <chrono>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gloo/algorithm.h"
#include "gloo/allgather.h"
#include "gloo/allgather_ring.h"
#include "gloo/allgatherv.h"
#include "gloo/allreduce.h"
#include "gloo/allreduce_bcube.h"
#include "gloo/allreduce_halving_doubling.h"
#include "gloo/allreduce_local.h"
#include "gloo/allreduce_ring.h"
#include "gloo/allreduce_ring_chunked.h"
#include "gloo/alltoall.h"
#include "gloo/alltoallv.h"
#include "gloo/barrier.h"
#include "gloo/barrier_all_to_all.h"
#include "gloo/barrier_all_to_one.h"
#include "gloo/broadcast.h"
#include "gloo/broadcast_one_to_all.h"
#include "gloo/common/aligned_allocator.h"
#include "gloo/common/common.h"
#include "gloo/common/deadline.h"
#include "gloo/common/env.h"
#include "gloo/common/error.h"
#include "gloo/common/linux.h"
#include "gloo/common/linux_devices.h"
#include "gloo/common/logging.h"
#include "gloo/common/memory.h"
#include "gloo/common/store.h"
#include "gloo/common/string.h"
#include "gloo/common/thread_annotations.h"
#include "gloo/common/utils.h"
#include "gloo/config.h"
#include "gloo/context.h"
#include "gloo/fwd.h"
#include "gloo/gather.h"
#include "gloo/gatherv.h"
#include "gloo/launch.h"
#include "gloo/math.h"
#include "gloo/pairwise_exchange.h"
#include "gloo/reduce.h"
#include "gloo/reduce_scatter.h"
#include "gloo/reduce_scatterv.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/exchange_store.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/rendezvous/hash_store.h"
#include "gloo/rendezvous/prefix_store.h"
#include "gloo/rendezvous/store.h"
#include "gloo/rendezvous/tcp_store.h"
#include "gloo/scatter.h"
#include "gloo/transport/address.h"
#include "gloo/transport/auto/device.h"
#include "gloo/transport/buffer.h"
#include "gloo/transport/context.h"
#include "gloo/transport/device.h"
#include "gloo/transport/pair.h"
#include "gloo/transport/remote_key.h"
#include "gloo/transport/shm/allocate.h"
#include "gloo/transport/shm/device.h"
#include "gloo/transport/tcp/attr.h"
#include "gloo/transport/tcp/device.h"
#include "gloo/transport/unbound_buffer.h"
#include "gloo/types.h"
#if GLOO_USE_REDIS
#include "gloo/rendezvous/redis_store.h"
#endif
#if GLOO_HAVE_TRANSPORT_IBVERBS
#include "gloo/transport/ibverbs/device.h"
#endif
#include "support/check.h"
#include "support/money.h"
#include "support/money_options.h"
#include "support/ranks.h"

namespace {

constexpr bool areFlags(std::initializer_list<int> values) {
  for (const int value : values) {
    if (value != 0 && value != 1) {
      return false;
    }
  }
  return true;
}
static_assert(areFlags({GLOO_USE_CUDA, GLOO_USE_NCCL, GLOO_USE_REDIS,
                        GLOO_USE_IBVERBS, GLOO_USE_MPI, GLOO_USE_AVX,
                        GLOO_USE_LIBUV, GLOO_USE_TORCH_DTYPES,
                        GLOO_HAVE_TRANSPORT_TCP, GLOO_HAVE_TRANSPORT_TCP_TLS,
                        GLOO_HAVE_TRANSPORT_IBVERBS, GLOO_HAVE_TRANSPORT_UV}));
static_assert(GLOO_HAVE_TRANSPORT_TCP == 1);

void checkNames() {
  CHECK(gloo::MakeString(GLOO_VERSION_MAJOR, ".", GLOO_VERSION_MINOR, ".",
                         GLOO_VERSION_PATCH) == EXPECT_VERSION);
  CHECK(std::string(GLOO_ERROR_MSG("rank ", 3)).find("whole_api.cc:") !=
        std::string::npos);
  CHECK(throwsWith<gloo::IoException>(
      "] lost 3 of 4", [] { GLOO_THROW_IO_EXCEPTION("lost ", 3, " of ", 4); }));
  CHECK(throwsWith<gloo::InvalidOperationException>("] no rank 5", [] {
    GLOO_THROW_INVALID_OPERATION_EXCEPTION("no rank ", 5);
  }));
  CHECK(throwsWith<gloo::Exception>("] why", [] { GLOO_THROW("why"); }));
  CHECK(throwsWith<gloo::EnforceNotMet>("a hint", [] {
    GLOO_ENFORCE_LE(gloo::Slot::build(1, 2), 3u, "a hint");
  }));
  const gloo::PCIClassMatch accelerators = gloo::kPCIClass3D;
  const gloo::PCIClassMatch none = {1, 0};
  CHECK(gloo::pciDevices(accelerators).size() <=
        gloo::pciDevices({0, 0}).size());
  CHECK(gloo::pciDevices(none).empty());
  gloo::launch::Environment environment;
  CHECK(environment.rank == 0 && environment.size == 1);
  const gloo::transport::shm::Memory memory;
  CHECK(!memory && memory.size() == 0);
#if GLOO_HAVE_TRANSPORT_IBVERBS
  const gloo::transport::ibverbs::attr port{"mlx5_0", 1, 3};
  CHECK(port.name == "mlx5_0" && port.port == 1 && port.index == 3);
#endif
}

template <typename Half>
void checkHalf() {
  Half three;
  three = 3;
  const Half two(2.0);
  CHECK(three != two && two < three && three >= two && !(three == two));
  CHECK(three + two == Half(5) && three - two == Half(1));
  three *= two;
  three /= Half(3);
  CHECK(three == two && gloo::MakeString(two) == "2");
}

void checkValues() {
  checkHalf<gloo::float16>();
  checkHalf<gloo::bfloat16>();
  CHECK(gloo::cpu_half2float(gloo::cpu_float2half_rn(1.5f)) == 1.5f);
  const auto slot = gloo::Slot::build(gloo::kBarrierSlotPrefix, 9) + 1;
  CHECK(slot == (uint64_t{7} << 56 | uint64_t{9} << 24) + 1);
  CHECK(gloo::roundUp(size_t{5}, 4) == 8 && gloo::log2ceil(5) == 3);
  std::vector<Money, gloo::aligned_allocator<Money, gloo::kBufferAlignment>>
      aligned(3);
  aligned.push_back({7});
  const auto copy = aligned;
  CHECK(copy == aligned && copy.get_allocator() == aligned.get_allocator());
  int object = *gloo::make_unique<int>(5);
  gloo::ShareableNonOwningPtr<int> owner(&object);
  const gloo::WeakNonOwningPtr<int> weak(owner);
  CHECK(*gloo::NonOwningPtr<int>(weak) == 5);
}

template <typename T>
class LocalSum : public gloo::LocalOp<T> {
 public:
  LocalSum(T* to, const T* from, size_t count)
      : to_(to), from_(from), count_(count) {}

  void runAsync() override {
    // What is long might be left to somebody else.
    isLong_ = count_ * sizeof(T) > gloo::kOnDeviceThreshold;
    gloo::ReductionFunction<T>::sum->call(to_, from_, count_);
  }
  void wait() override { CHECK(!isLong_); }

 private:
  T* const to_;
  const T* const from_;
  const size_t count_;
  bool isLong_ = true;
};

void checkReductions() {
  auto values = money(10, 3);
  const auto more = money(10, 4);
  LocalSum<Money>(values.data(), more.data(), 10).run();
  CHECK(values == money(10, 7));
  using Function = gloo::ReductionFunction<Money>;
  Function::product->call(values.data(), more.data(), 10);
  CHECK(values == money(10, 28));
  Function::min->call(values.data(), more.data(), 10);
  CHECK(values == more);
  Function::max->call(values.data(), money(10, 5).data(), 10);
  CHECK(values == money(10, 5));
  const std::pair<Reduce, long> untyped[] = {{&gloo::sum<Money>, 9},
                                             {&gloo::product<Money>, 20},
                                             {&gloo::min<Money>, 4},
                                             {&gloo::max<Money>, 5}};
  for (const auto& [reduce, expected] : untyped) {
    auto result = money(10, 0);
    reduce(result.data(), values.data(), more.data(), 10);
    CHECK(result == money(10, expected));
  }
}

// A sum of all ranks' two vectors.
template <typename Algorithm>
void checkAllreduce(const ContextPtr& context) {
  auto first = money(1000, context->rank);
  auto second = money(1000, 1);
  Algorithm(context, {first.data(), second.data()}, 1000).run();
  const long size = context->size;
  CHECK(first == money(1000, size * (size + 1) / 2));
  CHECK(second == first);
}

// The same of a type that the library knows, and by pointers.
template <typename T>
void checkKnown(const ContextPtr& context) {
  const int size = context->size;
  const T total(size * (size + 1) / 2);
  std::vector<T> first(1000, T(context->rank));
  std::vector<T> second(1000, T(1));
  const std::vector<T*> both{first.data(), second.data()};
  gloo::AllreduceHalvingDoubling<T>(context, both, 1000).run();
  CHECK(first == std::vector<T>(1000, total) && second == first);
  const std::vector<const T*> inputs{first.data(), second.data()};
  gloo::AllreduceOptions options(context);
  options.setInputs(inputs, 500);
  options.setOutputs(both.data(), 1, 500);
  options.setReduceFunction(Reduce(&gloo::sum<T>));
  gloo::allreduce(options);
  CHECK(first[499] == total * T(2 * size) && first[500] == total);
  first.assign(1000, T(2));
  gloo::ReduceScatterHalvingDoubling<T>(context, {first.data()}, size,
                                        std::vector<int>(size, 1),
                                        gloo::ReductionFunction<T>::product)
      .run();
  CHECK(first[0] == T(1 << size));
}

void checkObjects(const ContextPtr& context) {
  const int size = context->size;
  const int rank = context->rank;
  checkAllreduce<gloo::AllreduceRing<Money>>(context);
  checkAllreduce<gloo::AllreduceRingChunked<Money>>(context);
  checkAllreduce<gloo::AllreduceHalvingDoubling<Money>>(context);
  checkAllreduce<gloo::AllreduceBcube<Money>>(context);
  auto first = money(9, rank);
  auto second = money(9, 5);
  gloo::AllreduceLocal<Money>(context, {first.data(), second.data()}, 9).run();
  CHECK(first == money(9, rank + 5) && second == first);
  gloo::BroadcastOneToAll<Money>(context, {first.data()}, 9, size - 1).run();
  CHECK(first == money(9, size + 4));
  auto all = money(9 * size, 0);
  gloo::AllgatherRing<Money>(context, {second.data()}, all.data(), 9).run();
  for (int i = 0; i < 9 * size; i++) {
    CHECK(all[i] == Money{i / 9 + 5});
  }
  gloo::ReduceScatterHalvingDoubling<Money>(context, {all.data()}, 9 * size,
                                            std::vector<int>(size, 9))
      .run();
  all.resize(9);
  CHECK(all == money(9, (rank + 5) * size));
  gloo::PairwiseExchange(context, 64, 1).run();
  gloo::BarrierAllToAll(context).run();
  gloo::BarrierAllToOne(context, size - 1).run();
}

// Round the ring: a message, and bytes of a pair's own.
void checkMessages(const ContextPtr& context) {
  const int size = context->size;
  const int right = (context->rank + 1) % size;
  const int left = (context->rank + size - 1) % size;
  auto out = money(100, context->rank);
  auto in = money(100, -1);
  const auto source = over(context, out);
  const auto target = over(context, in);
  const auto deadline =
      std::chrono::system_clock::now() + std::chrono::seconds(20);
  source->send(right, gloo::Slot::build(0x40, 1));
  target->recv(left, gloo::Slot::build(0x40, 1));
  CHECK(source->waitSend(deadline) && target->waitRecv(deadline));
  CHECK(in == money(100, left));

  auto& pair = context->getPair(right);
  CHECK(pair->address().bytes().size() <=
        gloo::rendezvous::ContextFactory::kMaxAddressSize);
  in = money(100, -1);
  const int slot = context->nextSlot();
  const size_t bytes = out.size() * sizeof(Money);
  auto send = pair->createSendBuffer(slot, out.data(), bytes);
  auto recv = context->getPair(left)->createRecvBuffer(slot, in.data(), bytes);
  send->setDebug(true);  // said where GLOO_LOG_LEVEL is DEBUG
  send->send();
  recv->waitRecv();
  send->waitSend();
  CHECK(in == money(100, left));
}

void work(const ContextPtr& context) {
  checkKnown<float>(context);
  checkKnown<int64_t>(context);
  checkKnown<gloo::float16>(context);
  checkKnown<std::complex<double>>(context);
  checkObjects(context);
  checkListsOfBuffers(context);
  checkBuffers(context);
  checkCounts(context);
  checkAverages(context);
  checkMessages(context);
}

// With no more than a store must have.
class CallersStore : public gloo::rendezvous::Store {
 public:
  void set(const std::string& key, const std::vector<char>& data) override {
    behind_.set(key, data);
  }
  std::vector<char> get(const std::string& key) override {
    return behind_.get(key);
  }
  void wait(const std::vector<std::string>& keys) override {
    behind_.wait(keys);
  }

 private:
  gloo::rendezvous::HashStore behind_;
};

bool runJob(int size, gloo::rendezvous::Store& store) {
  return runThreads(size, [&](int rank, int ranks, const std::string&) {
    gloo::transport::DeviceAttr attr;
    attr.tcp.hostname = "localhost";
    auto device = gloo::transport::CreateDevice(attr);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
    context->connectFullMesh(store, device);
    work(context);
    leaveTogether(store, rank, ranks);
  });
}

}  // namespace

int main() {
  try {
    checkNames();
    checkValues();
    checkReductions();
    CallersStore store;
    const gloo::rendezvous::TcpStoreServer server("localhost", 0);
    gloo::rendezvous::TcpStore client("localhost", server.port());
    return runJob(2, store) && runJob(4, client) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
