// A TCP device where ranks of one host do not see all of each other:
// containers, other users, limits.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "gloo/internal/channel.h"
#include "gloo/internal/mesh.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/transport/tcp/device.h"
#include "tests/support/namespaces.h"
#include "tests/support/process_group.h"
#include "tests/support/spawn.h"
#include "tests/support/transports.h"
#include "tests/transport/contract/contract.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

std::string linkTo(transport::Context& context, int peer) {
  return internal::Channel::of(context).linkName(peer);
}

class NamespacesTest : public testing::Test {
 protected:
  using Rank = std::function<void(int rank)>;

  // Two ranks: `before` before they make their devices, `after` before they
  // connect. Both are then linked as `link` says, and messages of all sizes
  // travel.
  void run(
      const std::string& link, const Rank& before,
      const Rank& after = [](int) {},
      const transport::tcp::attr& wanted = {"127.0.0.1"}) {
    ::chmod(directory_.path().c_str(), 0777);
    ProcessGroup ranks(2, [&](Child& child) {
      before(child.rank);
      const auto work = [&] {
        auto device = transport::tcp::CreateDevice(wanted);
        after(child.rank);
        exchange(device, child.rank, link);
      };
      // Anything may have threads by then, but the child of a fork.
      inChild(work);
    });
    ranks.joinAll(std::chrono::seconds(60));
  }

 private:
  void exchange(const std::shared_ptr<transport::Device>& device, int rank,
                const std::string& link) {
    auto context = device->createContext(rank, 2);
    context->setTimeout(contextTimeout());
    context->createAndConnectAllPairs(
        std::make_shared<rendezvous::FileStore>(directory_.path()));
    EXPECT_EQ(linkTo(*context, 1 - rank), link);
    for (const size_t bytes : {0, 40, 20000, 3000000}) {
      Message out(context, pattern(static_cast<uint64_t>(rank), bytes));
      Message in(context, bytes);
      in.buffer->recv(1 - rank, bytes);
      out.buffer->send(1 - rank, bytes);
      EXPECT_TRUE(out.buffer->waitSend());
      EXPECT_TRUE(in.buffer->waitRecv());
      EXPECT_TRUE(in.holds(static_cast<uint64_t>(1 - rank)));
    }
    meet(context);
  }

  ScratchDirectory directory_;
};

TEST_F(NamespacesTest, OtherProcessAndIpcNamespacesAndHostNamesShareMemory) {
  constexpr int kNamespaces = CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
  SKIP_IF_MISSING("namespaces", whyWithout(kNamespaces));
  run("shm", [&](int rank) {
    enter(kNamespaces);
    const std::string name = "container" + std::to_string(rank);
    EXPECT_EQ(::sethostname(name.data(), name.size()), 0);
  });
}

// Two networks, joined by an interface that has a number of its own in each.
class JoinedNetworks {
 public:
  JoinedNetworks() {
    for (const int side : {0, 1}) {
      ip("netns add " + name(side));
    }
    ip("-n " + name(1) + " link add first type veth peer name second");
    ip("-n " + name(0) + " link add gloo type veth peer name gloo netns " +
       name(1));
    for (const int side : {0, 1}) {
      ip("-n " + name(side) + " link set gloo addrgenmode none up");
      ip("-n " + name(side) + " addr add fe80::" + std::to_string(side + 1) +
         "/64 dev gloo nodad");
    }
  }
  ~JoinedNetworks() {
    for (const int side : {0, 1}) {
      ip("netns del " + name(side));
    }
  }

  void enter(int side) const {
    const int fd =
        ::open(("/run/netns/" + name(side)).c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(::setns(fd, CLONE_NEWNET), 0) << std::strerror(errno);
    ::close(fd);
  }

 private:
  std::string name(int side) const {
    return "gloo" + std::to_string(owner_) + "." + std::to_string(side);
  }
  static void ip(const std::string& arguments) {
    EXPECT_EQ(std::system(("ip " + arguments).c_str()), 0) << arguments;
  }

  const pid_t owner_ = ::getpid();
};

TEST_F(NamespacesTest, ALinkLocalAddressIsReachedByTheOwnInterface) {
  SKIP_IF_MISSING("namespaces", whyWithout(CLONE_NEWNET));
  SKIP_IF_MISSING("namespaces", std::system("ip -V >/dev/null") == 0
                                    ? ""
                                    : "ip: install iproute2");
  const JoinedNetworks networks;
  transport::tcp::attr wanted;
  wanted.iface = "gloo";
  run(
      "tcp", [&](int rank) { networks.enter(rank); }, [](int) {}, wanted);
}

// The caller's Unix socket is in another network, its call comes from this one.
TEST_F(NamespacesTest, AnotherNetworkNamespaceMeansTcp) {
  SKIP_IF_MISSING("namespaces", whyWithout(CLONE_NEWNET));
  const int ours = ::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(ours, 0);
  run(
      "tcp",
      [](int rank) {
        if (rank == 1) {
          enter(CLONE_NEWNET);
          setLoopback(true);
        }
      },
      [&](int rank) {
        if (rank == 1) {
          ASSERT_EQ(::setns(ours, CLONE_NEWNET), 0);
        }
      });
  ::close(ours);
}

// Without a map nobody has a number there, this user neither.
TEST_F(NamespacesTest, AUserNamespaceWithoutUsersMeansTcpOnEitherSide) {
  SKIP_IF_MISSING("namespaces", whyWithout(CLONE_NEWUSER));
  for (const int alone : {0, 1}) {
    run("tcp", [&](int rank) {
      if (rank == alone) {
        enter(CLONE_NEWUSER);
      }
    });
  }
}

TEST_F(NamespacesTest, AnotherUserMeansTcpOnEitherSide) {
  SKIP_IF_MISSING("root",
                  ::geteuid() == 0 ? "" : "only root can become another user");
  for (const int other : {0, 1}) {
    run("tcp", [&](int rank) {
      if (rank == other) {
        ASSERT_EQ(::setresuid(1, 1, 1), 0);
      }
    });
  }
}

// Who is called makes the segment.
TEST_F(NamespacesTest, WithoutRoomForASegmentItIsTcp) {
  run("tcp", [](int rank) {
    if (rank == 0) {
      const rlimit small{65536, 65536};
      ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    }
  });
}

// What a rank that connects knows of another one's process.
class ProcessTest : public testing::Test {
 protected:
  static std::shared_ptr<transport::Context> makeContext(int rank) {
    return transport::tcp::CreateDevice("127.0.0.1")->createContext(rank, 2);
  }
  void publish(transport::Context& context) {
    store_.set("address", internal::Mesh::of(context).address().bytes);
  }
  // Whether it is gone, in the eyes of this process.
  bool isGone(pid_t* pid) {
    const auto context = makeContext(0);
    internal::Mesh& mesh = internal::Mesh::of(*context);
    const auto peer = mesh.decode(store_.get("address"));
    *pid = peer.pid;
    return mesh.isGone(peer);
  }

  ScratchDirectory directory_;
  rendezvous::FileStore store_{directory_.path()};
};

TEST_F(ProcessTest, WhoHasNoNumberInOurNamespaceIsNotGone) {
  SKIP_IF_MISSING("namespaces", whyWithout(CLONE_NEWPID));
  ProcessGroup ranks(2, [&](Child& child) {
    if (child.rank == 1) {
      const auto context = makeContext(1);
      publish(*context);
      store_.get("looked");
      return;
    }
    enter(CLONE_NEWPID);
    inChild([&] {
      pid_t pid = 0;
      EXPECT_FALSE(isGone(&pid));
      EXPECT_EQ(::kill(pid, 0), -1) << "it has a number here: " << pid;
      store_.set("looked", {});
    });
  });
  ranks.joinAll();
}

TEST_F(ProcessTest, WhoHasEndedIsGoneInANamespaceWithAnothersProc) {
  SKIP_IF_MISSING("namespaces", whyWithout(CLONE_NEWPID));
  ProcessGroup ranks(1, [&](Child&) {
    enter(CLONE_NEWPID);
    inChild([&] {
      const pid_t other = ::fork();
      ASSERT_GE(other, 0);
      if (other == 0) {
        publish(*makeContext(1));
        ::_exit(0);
      }
      siginfo_t ended;
      ASSERT_EQ(
          ::waitid(P_PID, static_cast<id_t>(other), &ended, WEXITED | WNOWAIT),
          0);
      pid_t pid = 0;
      EXPECT_TRUE(isGone(&pid)) << "a zombie";
      EXPECT_EQ(pid, other);
      EXPECT_EQ(::waitpid(other, nullptr, 0), other);
      EXPECT_TRUE(isGone(&pid));
    });
  });
  ranks.joinAll();
}

// Whether some socket of this network waits for its peer's window to open.
bool aWindowIsClosed() {
  std::ifstream sockets("/proc/self/net/tcp");
  for (std::string line; std::getline(sockets, line);) {
    if (line.find(" 04:") != std::string::npos) {
      return true;
    }
  }
  return false;
}

// Then nothing is unacknowledged. The receiver is stopped, which is no death,
// until its network goes.
TEST(LostHostTest, IsNoticedWhileItsWindowIsClosed) {
  SKIP_IF_MISSING("namespaces", whyWithout(CLONE_NEWNET));
  inChild([] {
    enter(CLONE_NEWNET);
    setLoopback(true);
    const ScratchDirectory directory;
    ProcessGroup ranks(2, [&](Child& child) {
      ::setenv("GLOO_TCP_SHM", "0", 1);
      auto device = transport::tcp::CreateDevice({"127.0.0.1"});
      auto context = device->createContext(child.rank, 2);
      context->setTimeout(std::chrono::seconds(60));
      context->createAndConnectAllPairs(
          std::make_shared<rendezvous::FileStore>(directory.path()));
      Message message(context, size_t{64} << 20);
      message.buffer->recv(1 - child.rank, 1);
      meet(context);
      child.say("connected");
      child.hear();
      message.buffer->send(1 - child.rank, 1);
      try {
        message.buffer->waitSend();
        child.say("sent");
      } catch (const IoException& e) {
        child.say(e.what());
      }
    });
    ranks.expectAll("connected");
    ranks.signal(1, SIGSTOP);
    ranks.tell(0, "send");
    const auto limit = now() + std::chrono::seconds(20) * patience();
    while (!aWindowIsClosed() && now() < limit) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(aWindowIsClosed());
    setLoopback(false);
    const auto since = now();
    const std::string said = ranks.hear(0, std::chrono::seconds(20));
    EXPECT_NE(said.find("has not answered"), std::string::npos) << said;
    EXPECT_LT(now() - since, std::chrono::seconds(10) * patience());
    ranks.signal(1, SIGKILL);
    const Outcome outcome = ranks.join(0, std::chrono::seconds(20));
    EXPECT_TRUE(outcome.exitedWith(0)) << outcome.str();
  });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
