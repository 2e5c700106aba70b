// What is left of shared memory when a rank was killed in the middle of a
// collective, and the others have let go of their contexts: nothing.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "gloo/allreduce.h"
#include "gloo/common/error.h"
#include "gloo/math.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/transport/auto/device.h"
#include "gloo/transport/shm/allocate.h"
#include "gloo/transport/shm/device.h"
#include "tests/support/spawn.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

constexpr int kSize = 3;
constexpr int kVictim = 1;
constexpr size_t kCount = 100000;
using DevicePtr = std::shared_ptr<transport::Device>;

int linesWith(const char* file, const std::string& part) {
  std::ifstream in(file);
  int found = 0;
  for (std::string line; std::getline(in, line);) {
    found += line.find(part) != std::string::npos ? 1 : 0;
  }
  return found;
}

int openMemory() {
  int found = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the directory's own
    const auto target = std::filesystem::read_symlink(entry.path(), gone);
    found += target.string().find("memfd:gloo") != std::string::npos ? 1 : 0;
  }
  return found;
}

int filesInShm() {
  std::error_code none;
  const std::filesystem::directory_iterator files("/dev/shm", none);
  return none ? 0 : static_cast<int>(std::distance(begin(files), end(files)));
}

int unixSockets() { return linesWith("/proc/net/unix", "@gloo-"); }

// As many collectives as it takes; the victim's memory is shared as well.
void reduceUntilKilled(int rank, const std::string& path, DevicePtr device) {
  auto context = std::make_shared<rendezvous::Context>(rank, kSize);
  context->setTimeout(contextTimeout());
  context->connectFullMesh(std::make_shared<rendezvous::FileStore>(path),
                           device);
  const auto memory = transport::shm::allocate(kCount * sizeof(int));
  auto* const values = static_cast<int*>(memory.data());
  AllreduceOptions opts(context);
  opts.setOutput(values, kCount);
  int calls = 0;
  opts.setReduceFunction([&](void* c, const void* a, const void* b, size_t n) {
    if (rank == kVictim && ++calls == 20) {
      ::raise(SIGKILL);
    }
    sum<int>(c, a, b, n);
  });
  try {
    while (true) {
      allreduce(opts);
    }
  } catch (const PeerLostException&) {
  }
}

int survive(int rank, const std::string& path,
            const std::function<DevicePtr()>& maker) {
  reduceUntilKilled(rank, path, maker());
  const int mapped = linesWith("/proc/self/maps", "memfd:gloo");
  const int open = openMemory();
  if (mapped != 0 || open != 0) {
    fprintf(stderr, "rank %d: %d mappings, %d descriptors\n", rank, mapped,
            open);
    return 1;
  }
  return 0;
}

void checkKilled(const std::function<DevicePtr()>& maker) {
  const ScratchDirectory directory;
  const int files = filesInShm();
  const int sockets = unixSockets();
  std::vector<pid_t> pids;
  for (int rank = 0; rank < kSize; rank++) {
    pids.push_back(::fork());
    if (pids.back() == 0) {
      int status = 2;
      try {
        status = survive(rank, directory.path(), maker);
      } catch (const std::exception& e) {
        fprintf(stderr, "rank %d: %s\n", rank, e.what());
      }
      ::_exit(status);
    }
  }
  for (int rank = 0; rank < kSize; rank++) {
    int status = -1;
    const pid_t pid = pids[static_cast<size_t>(rank)];
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, rank == kVictim ? SIGKILL : 0) << "rank " << rank;
  }
  EXPECT_EQ(filesInShm(), files);
  EXPECT_EQ(unixSockets(), sockets);
}

TEST(LeftBehindTest, NothingAfterAKill) {
  checkKilled([] { return transport::shm::CreateDevice(); });
  checkKilled([] { return transport::CreateDevice(); });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
