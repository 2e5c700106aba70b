// What is left of shared memory when a rank was killed in the middle of a
// collective, and the others have let go of their contexts: nothing.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <utility>

#include "gloo/allreduce.h"
#include "gloo/common/error.h"
#include "gloo/math.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/transport/auto/device.h"
#include "gloo/transport/shm/allocate.h"
#include "gloo/transport/shm/device.h"
#include "tests/support/namespaces.h"
#include "tests/support/process_group.h"
#include "tests/support/spawn.h"
#include "tests/support/transports.h"

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

void survive(int rank, const std::string& path, DevicePtr device) {
  reduceUntilKilled(rank, path, std::move(device));
  EXPECT_EQ(linesWith("/proc/self/maps", "memfd:gloo"), 0) << "rank " << rank;
  EXPECT_EQ(openMemory(), 0) << "rank " << rank;
}

// Where no other process makes sockets or files, which are named for nobody.
void checkKilled(const std::function<DevicePtr()>& maker) {
  const ScratchDirectory directory;
  ProcessGroup alone(1, [&](Child&) {
    // (Else what follows would be of the whole machine.)
    ASSERT_NO_FATAL_FAILURE(enter(CLONE_NEWNET | CLONE_NEWNS));
    setLoopback(true);
    ASSERT_EQ(::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    ASSERT_EQ(::mount("", "/dev/shm", "tmpfs", 0, nullptr), 0);
    ProcessGroup ranks(kSize, [&](Child& child) {
      survive(child.rank, directory.path(), maker());
    });
    const Outcome outcome = ranks.join(kVictim, std::chrono::seconds(30));
    EXPECT_TRUE(outcome.killedBy(SIGKILL)) << outcome.str();
    ranks.joinAll(std::chrono::seconds(30));
    EXPECT_EQ(filesInShm(), 0);
    EXPECT_EQ(unixSockets(), 0);
  });
  alone.joinAll();
}

TEST(LeftBehindTest, NothingAfterAKill) {
  SKIP_IF_MISSING("namespaces", whyWithout(CLONE_NEWNET | CLONE_NEWNS));
  checkKilled([] { return transport::shm::CreateDevice(); });
  checkKilled([] { return transport::CreateDevice(); });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
