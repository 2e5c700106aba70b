// Memory of the shared allocator in messages.
#include "transport/shm/loans.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <random>
#include <thread>
#include <vector>

#include "gloo/internal/statistics.h"
#include "gloo/transport/shm/allocate.h"
#include "gloo/transport/shm/device.h"
#include "gloo/transport/unbound_buffer.h"
#include "tests/support/spawn.h"
#include "tests/transport/shm/harness.h"
#include "transport/shm/descriptor_message.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using transport::base::SharedAllocations;
using transport::base::UniqueFd;
using transport::shm::allocate;
using transport::shm::Loans;
using transport::shm::Memory;
using transport::shm::ShmLink;

struct Ends {
  UniqueFd owner;
  UniqueFd borrower;

  Ends() {
    int sockets[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets),
              0);
    owner = UniqueFd(sockets[0]);
    borrower = UniqueFd(sockets[1]);
  }
};

char* bytesOf(const Memory& memory) {
  return static_cast<char*>(memory.data());
}

uint64_t addressOf(const char* data) {
  return reinterpret_cast<uint64_t>(data);
}

// Reads all that is there.
void receiveAll(Loans& loans, int socket) {
  char byte = 0;
  while (::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1) {
    ASSERT_TRUE(loans.receive(socket));
  }
}

TEST(LoansTest, WhatIsLentIsFoundByItsAddressInTheOwner) {
  const Ends ends;
  const Memory memory = allocate(10000);
  Loans owner;
  Loans borrower;
  owner.lend(ends.owner.get(), bytesOf(memory) + 100, 5000);
  receiveAll(borrower, ends.borrower.get());
  const char* const lent =
      borrower.find(addressOf(bytesOf(memory) + 200), 9800);
  ASSERT_NE(lent, nullptr);
  EXPECT_NE(lent, bytesOf(memory) + 200);
  bytesOf(memory)[200] = 7;
  EXPECT_EQ(*lent, 7);
  // Whole pages are lent.
  EXPECT_NE(borrower.find(addressOf(bytesOf(memory)), 12288), nullptr);
  EXPECT_EQ(borrower.find(addressOf(bytesOf(memory)), 12289), nullptr);
  EXPECT_EQ(borrower.find(addressOf(bytesOf(memory)), SIZE_MAX), nullptr);
  EXPECT_EQ(borrower.find(addressOf(bytesOf(memory)) - 1, 1), nullptr);
}

// What a broken peer says of its memory leads nowhere, or to memory of its own.
TEST(LoansTest, GarbageIsNoLoan) {
  std::mt19937 random(1);
  const Memory memory = allocate(10000);
  const auto id =
      SharedAllocations::instance().find(addressOf(bytesOf(memory))).id;
  const auto allocation = SharedAllocations::instance().byId(id);
  for (int turn = 0; turn < 200; turn++) {
    const Ends ends;
    Loans borrower;
    const UniqueFd file(::open("/dev/zero", O_RDWR | O_CLOEXEC));
    for (int i = 0; i < 30; i++) {
      std::vector<char> bytes(1 + random() % 40);
      for (char& byte : bytes) {
        byte = static_cast<char>(random() % 3);
      }
      if (random() % 4 == 0 && bytes.size() >= 17) {
        bytes[0] = 1;  // the right name, at any address
        std::memcpy(bytes.data() + 1, &id, sizeof(id));
      }
      switch (random() % 3) {
        case 0:
          transport::shm::sendDescriptor(ends.owner.get(), bytes,
                                         allocation->descriptor());
          break;
        case 1:
          transport::shm::sendDescriptor(ends.owner.get(), bytes, file.get());
          break;
        default:
          ::send(ends.owner.get(), bytes.data(), bytes.size(), 0);
      }
    }
    receiveAll(borrower, ends.borrower.get());
    for (int i = 0; i < 100; i++) {
      const uint64_t address = (uint64_t{random()} << 32) + random();
      const size_t bytes = 1 + random() % 20000;
      if (const char* const lent = borrower.find(address, bytes)) {
        EXPECT_EQ(lent[0] + lent[bytes - 1], 0);
      }
    }
  }
}

TEST(LoansTest, AnAllocationIsLentOnce) {
  const Ends ends;
  const Memory memory = allocate(10000);
  std::vector<char> ordinary(10000);
  Loans owner;
  for (int i = 0; i < 100; i++) {
    owner.lend(ends.owner.get(), bytesOf(memory) + i, 5000);
    owner.lend(ends.owner.get(), ordinary.data(), ordinary.size());
  }
  char bytes[100];
  EXPECT_EQ(::recv(ends.borrower.get(), bytes, sizeof(bytes), 0), 17);
  EXPECT_EQ(::recv(ends.borrower.get(), bytes, sizeof(bytes), 0), -1);
}

TEST(LoansTest, WhatIsFreedOrWithdrawnIsNotFound) {
  const Ends ends;
  Memory freed = allocate(10000);
  Memory withdrawn = allocate(10000);
  Loans owner;
  Loans borrower;
  for (const Memory* memory : {&freed, &withdrawn}) {
    owner.lend(ends.owner.get(), bytesOf(*memory), 10000);
    receiveAll(borrower, ends.borrower.get());
    ASSERT_NE(borrower.find(addressOf(bytesOf(*memory)), 1), nullptr);
  }
  const uint64_t at = addressOf(bytesOf(freed));
  freed = Memory();
  EXPECT_EQ(borrower.find(at, 1), nullptr);
  auto& all = SharedAllocations::instance();
  all.withdraw(all.find(addressOf(bytesOf(withdrawn))).id, 0, 100);
  EXPECT_EQ(borrower.find(addressOf(bytesOf(withdrawn)), 1), nullptr);
}

TEST(LoansTest, ManyAreLentOneAfterTheOther) {
  const Ends ends;
  Loans owner;
  Loans borrower;
  for (int i = 0; i < 300; i++) {
    const Memory memory = allocate(100);
    owner.lend(ends.owner.get(), bytesOf(memory), 100);
    receiveAll(borrower, ends.borrower.get());
    EXPECT_NE(borrower.find(addressOf(bytesOf(memory)), 100), nullptr);
  }
}

TEST(LoansTest, TooManyAreNotLent) {
  const Ends ends;
  Loans owner;
  Loans borrower;
  std::vector<Memory> memories;
  for (int i = 0; i < 100; i++) {
    memories.push_back(allocate(100));
    owner.lend(ends.owner.get(), bytesOf(memories.back()), 100);
    receiveAll(borrower, ends.borrower.get());
  }
  EXPECT_EQ(std::count_if(memories.begin(), memories.end(),
                          [&](const Memory& memory) {
                            return borrower.find(addressOf(bytesOf(memory)),
                                                 100) != nullptr;
                          }),
            64);
}

TEST(LoansTest, RingsMayStandBetweenTheBytesOfOthers) {
  const Ends ends;
  const Memory memory = allocate(100);
  Loans owner;
  Loans borrower;
  const std::vector<char> rings(60, 0);
  ASSERT_EQ(::send(ends.owner.get(), rings.data(), rings.size(), 0), 60);
  owner.lend(ends.owner.get(), bytesOf(memory), 100);
  ASSERT_EQ(::send(ends.owner.get(), rings.data(), rings.size(), 0), 60);
  receiveAll(borrower, ends.borrower.get());
  EXPECT_NE(borrower.find(addressOf(bytesOf(memory)), 100), nullptr);
}

// The first read ends inside the first notice, with its descriptor.
TEST(LoansTest, ADescriptorStaysWithItsNotice) {
  const Ends ends;
  const Memory first = allocate(100);
  const Memory second = allocate(100);
  Loans owner;
  Loans borrower;
  const std::vector<char> rings(50, 0);
  ASSERT_EQ(::send(ends.owner.get(), rings.data(), rings.size(), 0), 50);
  owner.lend(ends.owner.get(), bytesOf(first), 100);
  owner.lend(ends.owner.get(), bytesOf(second), 100);
  receiveAll(borrower, ends.borrower.get());
  EXPECT_NE(borrower.find(addressOf(bytesOf(first)), 100), nullptr);
  EXPECT_NE(borrower.find(addressOf(bytesOf(second)), 100), nullptr);
}

size_t openDescriptors() {
  const std::filesystem::directory_iterator open("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(open), end(open)));
}

// A message with two descriptors leaves none of them open.
TEST(LoansTest, TwoDescriptorsAtOnceAreNotKept) {
  const Ends ends;
  int two[2] = {STDOUT_FILENO, STDERR_FILENO};
  char bytes[17] = {1};
  iovec part{bytes, sizeof(bytes)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(two))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  cmsghdr* c = CMSG_FIRSTHDR(&header);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof(two));
  std::memcpy(CMSG_DATA(c), two, sizeof(two));
  Loans borrower;
  const size_t before = openDescriptors();
  ASSERT_EQ(::sendmsg(ends.owner.get(), &header, 0), 17);
  receiveAll(borrower, ends.borrower.get());
  EXPECT_EQ(openDescriptors(), before);
}

// As an operation does that fails.
void withdraw(const Memory& memory) {
  auto& all = SharedAllocations::instance();
  all.withdraw(all.find(addressOf(bytesOf(memory))).id, 0, 4096);
}

// Memory of this process, lent to a link of it.
struct LentToLink {
  explicit LentToLink(transport::shm::ProcessMemory reads = {})
      : half(std::move(reads)), memory(allocate(8192)) {
    std::memset(memory.data(), 'a', 8192);
    lend(memory);
  }

  void lend(const Memory& other) {
    owner.lend(half.otherSocket.get(), bytesOf(other), 8192);
    half.link->onSocket();
  }

  transport::base::RemoteMemory at() const {
    return {addressOf(bytesOf(memory)), 0};
  }

  HalfLink half;
  Loans owner;
  Memory memory;
  std::string to = std::string(8192, '0');
};

// Where the kernel would read nothing.
TEST(LoansTest, AMessageGoesOnOutOfAnAllocationThatIsWithdrawn) {
  LentToLink lent;
  ShmLink& link = *lent.half.link;
  ASSERT_TRUE(link.reads(lent.at(), 8192, false));
  ASSERT_TRUE(link.read(lent.to.data(), 100, nullptr, lent.at(), nullptr));
  withdraw(lent.memory);
  const Memory another = allocate(8192);
  lent.lend(another);
  EXPECT_TRUE(link.read(lent.to.data(), 8192, nullptr, lent.at(), nullptr));
  EXPECT_EQ(lent.to, std::string(8192, 'a'));
  // Not one that is announced later.
  EXPECT_FALSE(link.reads(lent.at(), 8192, false));
  // What is freed is gone.
  const auto at = lent.at();
  lent.memory = Memory();
  EXPECT_FALSE(link.read(lent.to.data(), 8192, nullptr, at, nullptr));
  lent.half.poll();
  EXPECT_NE(lent.half.notes.lost, "");
}

TEST(LoansTest, WhatTheOwnerWritesAfterThatIsReadByTheKernel) {
  const transport::shm::Secret secret = transport::shm::makeSecret();
  LentToLink lent({::getpid(), reinterpret_cast<uint64_t>(&secret), secret});
  withdraw(lent.memory);
  std::memset(lent.memory.data(), 'b', 8192);
  EXPECT_TRUE(
      lent.half.link->read(lent.to.data(), 8192, nullptr, lent.at(), nullptr));
  EXPECT_EQ(lent.to, std::string(8192, 'b'));
}

// The peer may send what it likes.
TEST(LoansTest, WhatIsNoLoanIsNotTaken) {
  const Ends ends;
  const Memory memory = allocate(100);
  const auto range =
      SharedAllocations::instance().find(addressOf(bytesOf(memory)));
  const int real = SharedAllocations::instance().byId(range.id)->descriptor();
  Loans borrower;
  const auto send = [&](uint64_t id, int descriptor) {
    char bytes[17] = {1};
    std::memcpy(bytes + 1, &id, 8);
    std::memcpy(bytes + 9, &range.begin, 8);
    if (descriptor < 0) {
      EXPECT_EQ(::send(ends.owner.get(), bytes, 17, 0), 17);
    } else {
      EXPECT_EQ(
          transport::shm::sendDescriptor(ends.owner.get(), bytes, descriptor),
          17);
    }
    receiveAll(borrower, ends.borrower.get());
  };
  send(range.id, -1);                // without memory
  send(range.id + 1, real);          // another's name
  send(range.id, ends.owner.get());  // no memory
  EXPECT_EQ(borrower.find(range.begin, 1), nullptr);
  send(range.id, real);
  EXPECT_NE(borrower.find(range.begin, 1), nullptr);
}

TEST(LoansTest, TheEndOfThePeerIsSeen) {
  Ends ends;
  Loans loans;
  EXPECT_TRUE(loans.receive(ends.borrower.get()));
  ends.owner.reset();
  EXPECT_FALSE(loans.receive(ends.borrower.get()));
}

// Whole, and soon without the kernel.
void readWithoutTheKernel(bool singleCopy) {
  constexpr size_t kBytes = 200000;
  transport::shm::attr attr;
  attr.singleCopy = singleCopy;
  auto device = transport::shm::CreateDevice(attr);
  spawn(
      Mode::kThreads, [&] { return device; }, 2,
      [&](const std::shared_ptr<transport::Context>& context) {
        const int peer = 1 - context->rank;
        const Memory out = allocate(kBytes);
        std::vector<char> in(kBytes);
        auto send = context->createUnboundBuffer(out.data(), kBytes);
        auto recv = context->createUnboundBuffer(in.data(), kBytes);
        const auto receive = [&](char byte) {
          recv->recv(peer, 1);
          recv->waitRecv();
          EXPECT_EQ(std::count(in.begin(), in.end(), byte),
                    static_cast<ptrdiff_t>(kBytes));
        };
        const auto sendOne = [&](char byte) {
          std::memset(out.data(), byte, kBytes);
          send->send(peer, 1);
          send->waitSend();
        };
        // The socket that brings the memory is looked at now and then.
        bool lent = false;
        for (int i = 0; i < 10000 && !lent; i++) {
          const auto before = internal::statisticsOf(*device).bytesLent;
          const auto sent = static_cast<char>(1 + i % 100);
          context->rank == 0 ? sendOne(sent) : receive(sent);
          // Both ranks go by what rank 1 has seen.
          char seen =
              internal::statisticsOf(*device).bytesLent - before == kBytes;
          auto vote = context->createUnboundBuffer(&seen, 1);
          context->rank == 1 ? vote->send(0, 2) : vote->recv(1, 2);
          context->rank == 1 ? vote->waitSend() : vote->waitRecv();
          lent = seen == 1;
        }
        EXPECT_TRUE(lent);
      });
}

TEST(LoansTest, MessagesOutOfTheAllocatorAreReadWithoutTheKernel) {
  readWithoutTheKernel(true);
}

TEST(LoansTest, SoTheyAreWhereTheKernelReadsNothing) {
  readWithoutTheKernel(false);
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
