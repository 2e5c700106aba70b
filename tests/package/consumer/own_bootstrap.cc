// Contexts in the form of FlagCX and of Paddle's fleet: they make their pairs
// themselves, exchange addresses by a bootstrap of their own, in messages of
// one length, and connect one pair after the other or several at once.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gloo/allreduce.h"
#include "gloo/context.h"
#include "gloo/math.h"
#include "gloo/transport/tcp/device.h"
#if HAVE_ALLGATHER
#include "gloo/allgather.h"
#endif
#if HAVE_ALLTOALL
#include "gloo/alltoall.h"
#endif
#include "support/check.h"
#include "support/ranks.h"
#include "support/shared_table.h"

namespace {

using Bytes = std::vector<char>;

class Bootstrap {
 public:
  Bootstrap(const std::string& directory, int rank, int size)
      : table_(directory), rank_(rank), size_(size) {}

  std::vector<Bytes> allgather(const Bytes& mine) {
    const std::string name = "round" + std::to_string(round_++) + ".";
    table_.put(name + std::to_string(rank_), mine);
    std::vector<Bytes> all;
    for (int i = 0; i < size_; i++) {
      const std::string key = name + std::to_string(i);
      table_.waitFor(key, std::chrono::seconds(30));
      all.push_back(table_.at(key));
    }
    return all;
  }

 private:
  SharedTable table_;
  const int rank_;
  const int size_;
  int round_ = 0;
};

class BootstrappedContext : public gloo::Context {
 public:
  BootstrappedContext(int rank, int size, Bootstrap& bootstrap)
      : gloo::Context(rank, size), bootstrap_(bootstrap) {}

  void connectFullMesh(std::shared_ptr<gloo::transport::Device>& device,
                       int threads) {
    auto transport = device->createContext(rank, size);
    transport->setTimeout(getTimeout());
    std::vector<Bytes> addresses(size);
    size_t longest = 0;
    for (int i = 0; i < size; i++) {
      if (i != rank) {
        auto& pair = transport->createPair(i);
        addresses[i] = pair->address().bytes();
        longest = std::max(longest, addresses[i].size());
      }
    }
    // Elsewhere all addresses have one length. Here it is that of the host's
    // name and more: as if others had a longer one.
    const size_t each = longest + (EXPECT_OURS ? 40 : 0);
    Bytes mine(size * each);
    for (int i = 0; i < size; i++) {
      std::copy(addresses[i].begin(), addresses[i].end(),
                mine.begin() + i * each);
    }
    const auto all = bootstrap_.allgather(mine);
    std::vector<std::thread> connecting;
    for (int thread = 0; thread < threads; thread++) {
      connecting.emplace_back([&, thread] {
        for (int i = thread; i < size; i += threads) {
          if (i != rank) {
            const auto begin = all[i].begin() + rank * each;
            transport->getPair(i)->connect(Bytes(begin, begin + each));
          }
        }
      });
    }
    for (auto& thread : connecting) {
      thread.join();
    }
    device_ = device;
    transportContext_ = std::move(transport);
  }

 private:
  Bootstrap& bootstrap_;
};

enum class Type { kInt32, kInt64, kDouble };
enum class Reduction { kSum, kMax };
using ReduceFunction = void (*)(void*, const void*, const void*, size_t);

template <typename T>
ReduceFunction functionOf(Reduction reduction) {
  return reduction == Reduction::kSum ? ReduceFunction(&gloo::sum<T>)
                                      : ReduceFunction(&gloo::max<T>);
}

// What has no type is given one here.
template <typename T, typename Options>
void setBuffers(Options& options, void* in, void* out, size_t inCount,
                size_t outCount) {
  options.setInput(static_cast<T*>(in), inCount);
  options.setOutput(static_cast<T*>(out), outCount);
}

template <typename Options>
void setBuffers(Type type, Options& options, void* in, void* out,
                size_t inCount, size_t outCount) {
  switch (type) {
    case Type::kInt32:
      return setBuffers<int32_t>(options, in, out, inCount, outCount);
    case Type::kInt64:
      return setBuffers<int64_t>(options, in, out, inCount, outCount);
    case Type::kDouble:
      return setBuffers<double>(options, in, out, inCount, outCount);
  }
}

template <typename T>
void run(const std::shared_ptr<gloo::Context>& context, Type type) {
  const auto size = static_cast<size_t>(context->size);
  constexpr size_t kCount = 700;
  for (const Reduction reduction : {Reduction::kSum, Reduction::kMax}) {
    const std::vector<T> in(kCount, static_cast<T>(context->rank + 1));
    std::vector<T> out(kCount);
    gloo::AllreduceOptions options(context);
    options.setReduceFunction(functionOf<T>(reduction));
    setBuffers(type, options, const_cast<T*>(in.data()), out.data(), kCount,
               kCount);
    gloo::allreduce(options);
    const size_t expected =
        reduction == Reduction::kSum ? size * (size + 1) / 2 : size;
    CHECK(out == std::vector<T>(kCount, static_cast<T>(expected)));
  }
  std::vector<T> in(kCount * size);
  std::vector<T> out(kCount * size);
#if HAVE_ALLGATHER
  in.assign(in.size(), static_cast<T>(context->rank));
  gloo::AllgatherOptions gather(context);
  setBuffers(type, gather, in.data(), out.data(), kCount, kCount * size);
  gloo::allgather(gather);
  for (size_t i = 0; i < out.size(); i++) {
    CHECK(out[i] == static_cast<T>(i / kCount));
  }
#endif
#if HAVE_ALLTOALL
  for (size_t i = 0; i < in.size(); i++) {
    in[i] = static_cast<T>(10 * context->rank + i / kCount);
  }
  gloo::AlltoallOptions exchange(context);
  setBuffers(type, exchange, in.data(), out.data(), in.size(), out.size());
  gloo::alltoall(exchange);
  for (size_t i = 0; i < out.size(); i++) {
    CHECK(out[i] == static_cast<T>(10 * (i / kCount) + context->rank));
  }
#endif
}

// A message to each, on the slot that its sender's rank names.
void sendToAll(const std::shared_ptr<gloo::Context>& context) {
  const int rank = context->rank;
  const int size = context->size;
  std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> sends;
  std::vector<int64_t> values(3000, rank);
  const size_t bytes = values.size() * sizeof(int64_t);
  for (int i = 0; i < size; i++) {
    if (i != rank) {
      sends.push_back(context->createUnboundBuffer(values.data(), bytes));
      sends.back()->send(i, rank);
    }
  }
  for (int i = 0; i < size; i++) {
    if (i != rank) {
      std::vector<int64_t> got(values.size());
      auto recv = context->createUnboundBuffer(got.data(), bytes);
      recv->recv(i, i);
      recv->waitRecv(std::chrono::seconds(30));
      CHECK(got == std::vector<int64_t>(values.size(), i));
    }
  }
  for (auto& send : sends) {
    send->waitSend(std::chrono::seconds(30));
  }
}

bool runJob(int size, int threads) {
  return runProcesses(
      size, [threads](int rank, int ranks, const std::string& directory) {
        gloo::transport::tcp::attr attr;
        attr.hostname = "localhost";
        std::shared_ptr<gloo::transport::Device> device =
            gloo::transport::tcp::CreateDevice(attr);
        Bootstrap bootstrap(directory, rank, ranks);
        auto context =
            std::make_shared<BootstrappedContext>(rank, ranks, bootstrap);
        context->connectFullMesh(device, threads);
        run<int32_t>(context, Type::kInt32);
        run<int64_t>(context, Type::kInt64);
        run<double>(context, Type::kDouble);
        sendToAll(context);
        bootstrap.allgather({});  // nobody leaves while others are at work
      });
}

}  // namespace

int main() { return runJob(2, 1) && runJob(4, 1) && runJob(5, 3) ? 0 : 1; }
