// What a forked child has of the library: nothing.
#include "transport/base/fork.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gloo/common/error.h"
#include "gloo/internal/statistics.h"
#include "gloo/rendezvous/hash_store.h"
#include "gloo/transport/tcp/device.h"
#include "tests/support/forked_child.h"
#include "tests/support/sanitized.h"
#include "transport/base/context.h"
#include "transport/base/socket.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using transport::base::Origin;
using transport::base::UniqueFd;

bool isOpen(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

UniqueFd open() { return UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)); }

TEST(Fork, TheChildClosesWhatItInherited) {
  UniqueFd fd = open();
  UniqueFd moved = open();
  const int number = moved.get();
  const UniqueFd target = std::move(moved);
  EXPECT_TRUE(
      holdsInChild([&] { return !isOpen(fd.get()) && !isOpen(number); }));
  EXPECT_TRUE(isOpen(fd.get()));
  EXPECT_TRUE(isOpen(number));
}

TEST(Fork, AReleasedDescriptorIsTheCallers) {
  UniqueFd fd = open();
  const int number = fd.release();
  EXPECT_TRUE(holdsInChild([&] { return isOpen(number); }));
  ::close(number);
}

TEST(Fork, AnInheritedOwnerLeavesANewOwnersDescriptorAlone) {
  UniqueFd fd = open();
  EXPECT_TRUE(holdsInChild([&] {
    const UniqueFd fresh = open();
    const bool same = fresh.get() == fd.get();  // the lowest free number
    fd.reset();
    return same && isOpen(fresh.get());
  }));
}

TEST(Fork, GrandchildrenDoNotKeepTheChildsDescriptors) {
  EXPECT_TRUE(holdsInChild([&] {
    const UniqueFd fd = open();
    return holdsInChild([&] { return !isOpen(fd.get()); }) && isOpen(fd.get());
  }));
}

TEST(Fork, InheritedObjectsSayWhatIsWrong) {
  const Origin origin;
  EXPECT_FALSE(origin.inherited());
  EXPECT_NO_THROW(origin.check("context"));
  EXPECT_TRUE(holdsInChild([&] {
    try {
      origin.check("context");
    } catch (const InvalidOperationException& error) {
      const std::string text = error.what();
      return origin.inherited() && !Origin().inherited() &&
             text.find("context was created before fork()") !=
                 std::string::npos;
    }
    return false;
  }));
}

#ifndef GLOO_TEST_THREAD_SANITIZED  // which lets no such child have threads

std::shared_ptr<transport::Device> device() {
  return transport::tcp::CreateDevice(transport::tcp::attr("127.0.0.1"));
}

// The thread of an inherited device is no thread of the child's: by then its id
// may be another one's, or lead to memory that is gone.
TEST(Fork, AForkedChildDestroysADeviceBesideThreadsOfItsOwn) {
  std::shared_ptr<transport::Device> inherited = device();
  const auto afterAnother = [&] {
    std::thread([] {}).join();
    inherited.reset();
    return true;
  };
  waitUntilOthersSleep();
  EXPECT_TRUE(holdsInChild(afterAnother));
  EXPECT_TRUE(holdsInChild([&] {
    auto own = device();
    inherited.reset();
    own.reset();
    return true;
  }));
  std::vector<std::thread> others;
  std::atomic<bool> over{false};
  for (int i = 0; i < 8; i++) {
    others.emplace_back([&] { over.wait(false); });
  }
  waitUntilOthersSleep();
  EXPECT_TRUE(holdsInChild(afterAnother));
  over = true;
  over.notify_all();
  for (std::thread& other : others) {
    other.join();
  }
}

// A condition variable that is destroyed waits for those that wait for it.
TEST(Fork, AForkedChildDestroysAStoreThatAThreadWaitsIn) {
  auto store = std::make_unique<rendezvous::HashStore>();
  std::thread other([&waited = *store] { waited.wait({"key"}); });
  waitUntilOthersSleep();
  EXPECT_TRUE(holdsInChild([&] {
    store.reset();
    return true;
  }));
  store->set("key", {});
  other.join();
}

#endif

// Another thread may have held its lock, which then nobody gives back: every
// entry looks before it locks.
TEST(Fork, EveryEntryOfAContextAndItsDeviceIsRefused) {
  using transport::base::Context;
  const auto device =
      transport::tcp::CreateDevice(transport::tcp::attr("127.0.0.1"));
  const auto made = device->createContext(0, 2);
  auto& context = dynamic_cast<Context&>(*made);
  auto& pair = *context.createPair(1);
  const internal::PeerAddress own = context.address();
  internal::Operation op;
  const std::vector<std::function<void()>> entries = {
      [&] { context.createPair(1); },
      [&] { context.createUnboundBuffer(nullptr, 0); },
      [&] { context.begin(0, 0, nullptr); },
      [&] { context.postSend(op, 1, 0, nullptr, 0, 0, false); },
      [&] { context.waitUntil([] { return true; }, Deadline()); },
      [&] { context.glance([] { return true; }); },
      [&] { context.poll(); },
      [&] { context.cancel(op); },
      [&] { context.fail(std::make_shared<internal::Cause>()); },
      [&] { (void)context.failure(); },
      [&] { (void)context.linkName(1); },
      [&] { (void)context.address(); },
      [&] { context.addPeer(own); },
      [&] { (void)context.peerState(1); },
      [&] { (void)context.peerNonce(1); },
      [&] { (void)context.peerTrouble(1); },
      [&] { context.progress(std::chrono::milliseconds(1)); },
      [&] { (void)context.allConnected(); },
      [&] { context.isAlive(own, std::chrono::milliseconds(1)); },
      [&] { context.refuse("no"); },
      [&] { context.complete(1, nullptr); },
      [&] { context.share(Deadline()); },
      [&] { context.checkUsable("test"); },
      [&] { (void)pair.isConnected(); },
      [&] { pair.setSync(true, true); },
      [&] { pair.connect(own.bytes); },
      [&] { pair.createSendBuffer(0, nullptr, 0); },
      [&] { device->createContext(0, 2); },
      [&] { (void)internal::statisticsOf(*device); },
  };
  const auto lock = context.lock();
  for (size_t i = 0; i < entries.size(); i++) {
    EXPECT_TRUE(holdsInChild([&] { return isRefused(entries[i]); }))
        << "entry " << i;
  }
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
