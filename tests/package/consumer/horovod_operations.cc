// Contexts and operations in the form of Horovod: three contexts (all ranks,
// the ranks of a host, one rank of each host) over one device chosen by
// interface, made with stores that live only as long as the rendezvous.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/broadcast.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/store.h"
#include "gloo/transport/tcp/device.h"
#if HAVE_ALLGATHERV
#include "gloo/allgatherv.h"
#endif
#if HAVE_ALLTOALLV
#include "gloo/alltoallv.h"
#endif
#if HAVE_GATHERV
#include "gloo/gatherv.h"
#endif
#include "support/check.h"
#include "support/ranks.h"
#include "support/shared_table.h"

namespace {

// Has only what a store must have; and its keys become parts of addresses.
class ScopedStore : public gloo::rendezvous::Store {
 public:
  ScopedStore(const std::string& directory, const std::string& scope)
      : table_(directory), scope_(scope) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    CHECK(key.find('/') == std::string::npos);
    table_.put(scope_ + key, data);
  }
  std::vector<char> get(const std::string& key) override {
    return table_.at(scope_ + key);
  }
  void wait(const std::vector<std::string>& keys) override {
    wait(keys, std::chrono::seconds(30));
  }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override {
    for (const auto& key : keys) {
      table_.waitFor(scope_ + key, timeout);
    }
  }

 private:
  SharedTable table_;
  const std::string scope_;
};

using ContextPtr = std::shared_ptr<gloo::Context>;

ContextPtr rendezvous(const std::string& directory, const std::string& scope,
                      int rank, int size,
                      std::shared_ptr<gloo::transport::Device>& device) {
  std::unique_ptr<gloo::rendezvous::Store> store(
      new ScopedStore(directory, scope));
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->setTimeout(std::chrono::seconds(30));
  context->connectFullMesh(*store, device);
  return context;
}

// Which tensors are ready everywhere: a bit for each.
void agreeOnReady(const ContextPtr& context) {
  std::vector<long long> bits(4, ~0LL);
  bits[1] = ~(1LL << context->rank);
  gloo::AllreduceOptions opts(context);
  opts.setOutput(bits.data(), bits.size());
  void (*both)(void*, const void*, const void*,
               size_t) = [](void* c, const void* a, const void* b, size_t n) {
    auto* out = static_cast<long long*>(c);
    for (size_t i = 0; i < n; i++) {
      out[i] = static_cast<const long long*>(a)[i] &
               static_cast<const long long*>(b)[i];
    }
  };
  opts.setReduceFunction(gloo::AllreduceOptions::Func(both));
  gloo::allreduce(opts);
  for (size_t i = 0; i < bits.size(); i++) {
    CHECK(bits[i] == (i == 1 ? ~((1LL << context->size) - 1) : ~0LL));
  }
}

template <typename T>
void allreduceInPlace(const ContextPtr& context, size_t count) {
  std::vector<T> data(count, T(context->rank));
  gloo::AllreduceOptions opts(context);
  opts.setOutput<T>(data.data(), count);
  void (*func)(void*, const void*, const void*, size_t) = &::gloo::sum<T>;
  opts.setReduceFunction(func);
  gloo::allreduce(opts);
  const T sum = T(context->size * (context->size - 1) / 2);
  CHECK(data == std::vector<T>(count, sum));
}

void broadcastFrom(const ContextPtr& context, int root) {
  std::vector<uint8_t> data(5000, context->rank == root ? 7 : 0);
  gloo::BroadcastOptions opts(context);
  opts.setRoot(root);
  opts.setOutput<uint8_t>(data.data(), data.size());
  gloo::broadcast(opts);
  CHECK(data == std::vector<uint8_t>(5000, 7));
}

#if HAVE_ALLGATHERV
// In place: a rank's own part is already where it belongs.
void allgatherParts(const ContextPtr& context) {
  const int rank = context->rank;
  std::vector<size_t> counts;
  std::vector<size_t> starts;
  size_t total = 0;
  for (int i = 0; i < context->size; i++) {
    counts.push_back(i % 2 == 0 ? 100 + i : 0);
    starts.push_back(total);
    total += counts.back();
  }
  std::vector<float> all(total, -1);
  for (size_t i = 0; i < counts[rank]; i++) {
    all[starts[rank] + i] = static_cast<float>(rank);
  }
  gloo::AllgathervOptions opts(context);
  opts.setInput<float>(all.data() + starts[rank], counts[rank]);
  opts.setOutput<float>(all.data(), counts);
  gloo::allgatherv(opts);
  for (int i = 0; i < context->size; i++) {
    for (size_t j = 0; j < counts[i]; j++) {
      CHECK(all[starts[i] + j] == static_cast<float>(i));
    }
  }
}
#endif

#if HAVE_GATHERV
void gatherRequests(const ContextPtr& context) {
  const int rank = context->rank;
  std::vector<size_t> counts;
  size_t total = 0;
  for (int i = 0; i < context->size; i++) {
    counts.push_back(10 * (i + 1));
    total += counts.back();
  }
  std::vector<uint8_t> mine(counts[rank], static_cast<uint8_t>(rank));
  std::vector<uint8_t> all(total, 0xff);
  gloo::GathervOptions opts(context);
  opts.setInput(mine.data(), mine.size());
  if (rank == 0) {
    opts.setOutput(all.data(), counts);
  }
  opts.setRoot(0);
  gloo::gatherv(opts);
  size_t at = 0;
  for (int i = 0; rank == 0 && i < context->size; i++) {
    for (size_t j = 0; j < counts[i]; j++) {
      CHECK(all[at++] == i);
    }
  }
}
#endif

#if HAVE_ALLTOALLV
// Rank r sends i elements to rank i, so it receives r from each.
void exchangeSplits(const ContextPtr& context) {
  const int rank = context->rank;
  const int size = context->size;
  std::vector<int64_t> sendCounts;
  for (int i = 0; i < size; i++) {
    sendCounts.push_back(i);
  }
  std::vector<int32_t> in(size * (size - 1) / 2, rank);
  std::vector<int32_t> out(size * rank, -1);
  gloo::AlltoallvOptions opts(context);
  opts.setInput(in.data(), sendCounts);
  opts.setOutput(out.data(), std::vector<int64_t>(size, rank));
  gloo::alltoallv(opts);
  for (size_t i = 0; i < out.size(); i++) {
    CHECK(out[i] == static_cast<int32_t>(i / rank));
  }
}
#endif

void operate(const ContextPtr& context) {
  if (context->size == 1) {
    return;
  }
  for (int round = 0; round < 10; round++) {
    agreeOnReady(context);
    allreduceInPlace<float>(context, 1);
    allreduceInPlace<double>(context, 4097);
    allreduceInPlace<int64_t>(context, 100000);
    broadcastFrom(context, round % context->size);
#if HAVE_ALLGATHERV
    allgatherParts(context);
#endif
#if HAVE_GATHERV
    gatherRequests(context);
#endif
#if HAVE_ALLTOALLV
    exchangeSplits(context);
#endif
    gloo::BarrierOptions barrierOpts(context);
    gloo::barrier(barrierOpts);
  }
}

void job(int rank, int size, const std::string& directory) {
  gloo::transport::tcp::attr attr;
  attr.iface = "lo";
  attr.ai_family = AF_UNSPEC;
  auto device = gloo::transport::tcp::CreateDevice(attr);
  // As if there were two ranks on each host.
  const int host = rank / 2;
  const int local = rank % 2;
  const auto everyone = rendezvous(directory, "global", rank, size, device);
  const auto sameHost =
      rendezvous(directory, "local" + std::to_string(host), local, 2, device);
  const auto acrossHosts = rendezvous(
      directory, "cross" + std::to_string(local), host, size / 2, device);
  operate(everyone);
  operate(sameHost);
  operate(acrossHosts);
  operate(everyone);
}

}  // namespace

int main() { return runProcesses(4, job) ? 0 : 1; }
