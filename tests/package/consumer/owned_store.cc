// Communicators in the form of LMDeploy's: a store that is a PrefixStore and
// makes the one behind it itself, groups that are split, and a time limit that
// means none.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gloo/allgather.h"
#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/broadcast.h"
#include "gloo/common/utils.h"
#include "gloo/math.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/rendezvous/prefix_store.h"
#include "gloo/rendezvous/store.h"
#include "gloo/transport/tcp/attr.h"
#include "gloo/transport/tcp/device.h"
#include "support/check.h"
#include "support/ranks.h"

namespace {

class OwnedStore : public gloo::rendezvous::PrefixStore {
 public:
  OwnedStore(const std::string& directory, const std::string& prefix)
      : PrefixStore(prefix, nullptr), directory_(directory) {
    bool refused = false;
    try {
      has_v2_support();
    } catch (const gloo::InvalidOperationException&) {
      refused = true;
    }
    CHECK(refused);
    store_ = std::make_shared<gloo::rendezvous::FileStore>(directory_);
  }

  std::shared_ptr<OwnedStore> within(const std::string& prefix) const {
    return std::make_shared<OwnedStore>(directory_, prefix + "/" + prefix_);
  }

  using PrefixStore::prefix_;
  using PrefixStore::store_;

 private:
  const std::string directory_;
};

using ReduceFunction = void (*)(void*, const void*, const void*, size_t);
enum class Reduction { kSum, kMax, kMin };

template <typename T>
ReduceFunction functionOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return ::gloo::sum<T>;
    case Reduction::kMax:
      return ::gloo::max<T>;
    case Reduction::kMin:
      return ::gloo::min<T>;
  }
  return {};
}

class Communicator {
 public:
  Communicator(std::shared_ptr<OwnedStore> store, int ranks, int rank)
      : store_(std::move(store)), rank_(rank), ranks_(ranks) {
    gloo::transport::tcp::attr attr;
    attr.hostname = rank_ % 2 == 0 ? "localhost" : "127.0.0.1";
    device_ = gloo::transport::tcp::CreateDevice(attr);
    context_ = std::make_shared<gloo::rendezvous::Context>(rank_, ranks_);
    context_->setTimeout(kYear);
    context_->connectFullMesh(store_, device_);
  }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  void barrier() {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }

  void broadcast(void* data, size_t bytes, int root) {
    gloo::BroadcastOptions options(context_);
    options.setRoot(root);
    options.setOutput(static_cast<char*>(data), bytes);
    gloo::broadcast(options);
  }

  // In place: each rank's part is where it belongs.
  void allgather(void* data, size_t bytes) {
    gloo::AllgatherOptions options(context_);
    options.setOutput(static_cast<char*>(data), bytes * ranks_);
    gloo::allgather(options);
  }

  template <typename T>
  void allreduce(std::vector<T>& values, Reduction reduction) {
    gloo::AllreduceOptions options(context_);
    options.setReduceFunction(functionOf<T>(reduction));
    options.setOutput(values.data(), values.size());
    gloo::allreduce(options);
  }

  std::unique_ptr<Communicator> split(int color) {
    std::vector<int> colors(ranks_);
    colors[rank_] = color;
    allgather(colors.data(), sizeof(int));
    const auto same = [color](int other) { return other == color; };
    const auto before =
        std::count_if(colors.begin(), colors.begin() + rank_, same);
    const auto all = std::count_if(colors.begin(), colors.end(), same);
    const std::string prefix =
        std::to_string(color) + ":" + std::to_string(splits_++);
    return std::make_unique<Communicator>(store_->within(prefix),
                                          static_cast<int>(all),
                                          static_cast<int>(before));
  }

 private:
  // Between two requests anything may pass.
  static constexpr std::chrono::milliseconds kYear{1000LL * 3600 * 24 * 365};

  std::shared_ptr<OwnedStore> store_;
  const int rank_;
  const int ranks_;
  int splits_ = 0;
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::rendezvous::Context> context_;
};

template <typename T>
void reduceAll(Communicator& communicator) {
  const auto mine = static_cast<T>(communicator.rank() + 1);
  const auto ranks = static_cast<T>(communicator.ranks());
  const auto result = [&](Reduction reduction) {
    std::vector<T> values(33, mine);
    communicator.allreduce(values, reduction);
    CHECK(values == std::vector<T>(33, values[0]));
    return values[0];
  };
  CHECK(result(Reduction::kSum) == static_cast<T>(ranks * (ranks + 1) / 2));
  CHECK(result(Reduction::kMax) == ranks);
  CHECK(result(Reduction::kMin) == 1);
}

// What has a length of its own: the length first, then that many bytes.
void broadcastText(Communicator& communicator, const std::string& text,
                   int root) {
  size_t bytes = text.size();
  communicator.broadcast(&bytes, sizeof(bytes), root);
  std::string got(bytes, '\0');
  if (communicator.rank() == root) {
    got = text;
  }
  communicator.broadcast(got.data(), got.size(), root);
  CHECK(got == text);
}

void use(Communicator& communicator) {
  communicator.barrier();
  reduceAll<int32_t>(communicator);
  reduceAll<int64_t>(communicator);
  reduceAll<uint32_t>(communicator);
  reduceAll<uint64_t>(communicator);
  for (int root = 0; root < communicator.ranks(); root++) {
    broadcastText(communicator, "", root);
    broadcastText(communicator, std::string(10000, 'x'), root);
  }
  communicator.barrier();
}

}  // namespace

int main() {
  CHECK(!gloo::getHostname().empty());
  return runProcesses(4,
                      [](int rank, int size, const std::string& directory) {
                        Communicator world(
                            std::make_shared<OwnedStore>(directory, "0"), size,
                            rank);
                        use(world);
                        const auto half = world.split(rank % 2);
                        CHECK(half->ranks() == size / 2);
                        use(*half);
                        use(*world.split(0));
                      })
             ? 0
             : 1;
}
