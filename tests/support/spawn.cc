#include "tests/support/spawn.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/rendezvous/hash_store.h"
#include "tests/support/hosts.h"
#include "tests/support/process_group.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

constexpr std::chrono::seconds kLimit(60);

// Threads cannot be killed: a test program whose ranks hang ends here, naming
// them.
class Watchdog {
 public:
  explicit Watchdog(int size)
      : running_(size, true), thread_([this] { watch(); }) {}
  ~Watchdog() {
    {
      std::lock_guard<std::mutex> guard(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void returned(int rank) {
    std::lock_guard<std::mutex> guard(mutex_);
    running_[rank] = false;
  }

 private:
  void watch() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (changed_.wait_for(lock, hangLimit(kLimit), [&] { return over_; })) {
      return;
    }
    for (size_t rank = 0; rank < running_.size(); rank++) {
      if (running_[rank]) {
        std::fprintf(stderr, "rank %zu hangs\n", rank);
      }
    }
    std::fflush(nullptr);
    std::abort();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::vector<bool> running_;
  std::thread thread_;
};

void runSeat(const std::function<void(Seat&)>& fn, Seat seat) {
  try {
    fn(seat);
  } catch (const std::exception& e) {
    ADD_FAILURE() << "rank " << seat.rank << " threw: " << e.what();
  }
}

void spawnThreads(int size, const std::function<void(Seat&)>& fn) {
  auto store = std::make_shared<rendezvous::HashStore>();
  Watchdog watchdog(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; rank++) {
    threads.emplace_back([&, rank] {
      runSeat(fn, Seat{rank, size, store});
      watchdog.returned(rank);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

void spawnProcesses(int size, const std::function<void(Seat&)>& fn) {
  ScratchDirectory directory;
  ProcessGroup group(size, [&](Child& child) {
    auto store = std::make_shared<rendezvous::FileStore>(directory.path());
    runSeat(fn, Seat{child.rank, size, store});
  });
  group.joinAll(kLimit);
}

// This host's share of the ranks.
void spawnOnHosts(int size, const std::function<void(Seat&)>& fn) {
  const int count = hosts().count;
  const int own = hosts().own;
  const std::string name = nameOfUse();
  serveMeetingPlace();
  ProcessGroup group((size - own + count - 1) / count, [&](Child& child) {
    runSeat(fn, Seat{own + child.rank * count, size, meetingPlace(name)});
  });
  group.joinAll(kLimit);
}

}  // namespace

std::string name(Mode mode) {
  return mode == Mode::kThreads ? "threads" : "processes";
}

std::chrono::milliseconds contextTimeout() {
  return std::chrono::seconds(15) * patience();
}

void spawnSeats(Mode mode, int size, const std::function<void(Seat&)>& fn) {
  if (mode == Mode::kThreads) {
    spawnThreads(size, fn);
  } else if (hosts().count > 1) {
    spawnOnHosts(size, fn);
  } else {
    spawnProcesses(size, fn);
  }
}

void spawn(Mode mode, const DeviceMaker& maker, int size,
           const TransportFunction& fn) {
  spawnSeats(mode, size, [&](Seat& seat) {
    auto context = maker()->createContext(seat.rank, seat.size);
    context->setTimeout(contextTimeout());
    context->createAndConnectAllPairs(seat.store);
    fn(context);
  });
}

void spawnContexts(Mode mode, const DeviceMaker& maker, int size,
                   const ContextFunction& fn) {
  spawnSeats(mode, size, [&](Seat& seat) {
    auto context = std::make_shared<rendezvous::Context>(seat.rank, seat.size);
    context->setTimeout(contextTimeout());
    auto device = maker();
    context->connectFullMesh(seat.store, device);
    device.reset();
    fn(context);
  });
}

ScratchDirectory::ScratchDirectory() : owner_(::getpid()) {
  std::string path =
      (std::filesystem::temp_directory_path() / "gloo_test_XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) {
    throw std::runtime_error("mkdtemp failed for " + path);
  }
  path_ = path;
}

ScratchDirectory::~ScratchDirectory() {
  if (owner_ == ::getpid()) {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
}

}  // namespace test
GLOO_NAMESPACE_END
