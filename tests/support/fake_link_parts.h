// What fake links (fake_link.h) are made of. All of a device is used under its
// progress domain's lock; what two devices share has locks of its own.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <deque>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "tests/support/fake_link.h"
#include "tests/support/fake_wire.h"
#include "transport/base/device.h"

GLOO_NAMESPACE_BEGIN
namespace test {

using namespace transport::base;  // NOLINT: fakes of that folder

class FakeFactory;

// The bell of a device: outlives the factory, as peers ring it.
class Bell {
 public:
  Bell() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  int fd() const { return fd_.get(); }
  void ring() const {
    const uint64_t one = 1;
    [[maybe_unused]] const auto rv = ::write(fd_.get(), &one, sizeof(one));
  }
  void silence() const {
    uint64_t count = 0;
    [[maybe_unused]] const auto rv = ::read(fd_.get(), &count, sizeof(count));
  }

 private:
  UniqueFd fd_;
};

class FakeLink final : public Link {
 public:
  FakeLink(FakeFactory& factory, std::shared_ptr<FakeWire> wire, int side,
           LinkHandler& handler);
  ~FakeLink() override;

  const LinkCaps& caps() const override;
  bool send(const FrameHeader& header, const char* payload,
            void* token) override;
  bool write(const char* local, size_t bytes, const Region* region,
             RemoteMemory remote, uint32_t immediate, void* token) override;
  bool reads(RemoteMemory remote, size_t bytes, bool crowded) const override;
  bool read(char* local, size_t bytes, const Region* region,
            RemoteMemory remote, void* token) override;
  void finish() override;
  void finishWith(const FrameHeader& last, const char* payload) override;
  bool flushed() const override;
  bool finished() const override;
  void abandon() override;
  std::string str() const override { return "fake"; }

  // True if anything moved.
  bool poll();
  // Something is there that poll() has put off.
  bool hasWork() const;

 private:
  // Half of it is there, and the test wants no more.
  bool isHeld(const FakeEvent& event) const;
  struct Read {
    char* local;
    size_t bytes;
    RemoteMemory remote;
    void* token;
  };

  FakeEnd& mine() const { return wire_->ends[side_]; }
  FakeEnd& theirs() const { return wire_->ends[1 - side_]; }
  void push(FakeEvent event);
  void watchSend(const FrameHeader& header);
  using Queue = std::deque<std::shared_ptr<FakeEvent>>;
  void dropFrom(Queue::iterator first);
  void dropBorrowed();
  bool deliverCompletion();
  bool deliverRead();
  bool deliverEvent();
  bool deliverFrame(FakeEvent& event, bool begins);
  bool deliverWrite(FakeEvent& event);
  void endEvent();
  void lose(const char* why);

  FakeFactory& factory_;
  const std::shared_ptr<FakeWire> wire_;
  const int side_;
  LinkHandler* handler_;  // null: nothing is delivered any more
  std::deque<Read> reads_;
  uint64_t eagerUsed_ = 0;
  uint64_t eagerGranted_;  // the first grant is implied
};

class FakeFactory final : public LinkFactory, public Poller {
 public:
  FakeFactory(ProgressDomain& domain, const FakeOptions& options)
      : options(options), random(options.seed), domain_(domain) {
    caps_.remoteWrite = options.shape == FakeShape::kPush;
    const bool mixed = options.shape == FakeShape::kMixed;
    caps_.remoteRead = mixed || options.shape == FakeShape::kPull;
    if (caps_.remoteRead) {
      caps_.advertBytes = mixed ? 4 * options.eagerBytes : 0;
    }
    caps_.needsRegions = needsRegions(options.shape);
    caps_.eagerBytes = options.eagerBytes;
    caps_.creditBytes = options.creditBytes;
    caps_.creditQuantum = options.creditQuantum;
    caps_.maxFrameBytes = options.maxFrameBytes;
    domain_.add(*this);
  }
  ~FakeFactory() override { domain_.remove(*this); }

  std::string kind() const override { return name(options.shape); }
  LinkCaps caps(int) const override { return caps_; }
  const LinkCaps& capsRef() const { return caps_; }
  std::unique_ptr<PendingLink> prepare(int peers) override;
  std::unique_ptr<PendingLink> answer(int peers, const Hello& theirs) override;
  std::unique_ptr<Region> registerMemory(void* ptr, size_t bytes, MemoryKind,
                                         Rights rights) override;
  void addStatistics(internal::Statistics&) const override {}

  bool poll() override;
  int wakeFd() const override { return bell->fd(); }
  bool arm() override;

  bool chance(unsigned percent) { return random() % 100 < percent; }

  const FakeOptions options;
  std::mt19937_64 random;
  std::set<FakeLink*> links;
  const std::shared_ptr<Bell> bell = std::make_shared<Bell>();

 private:
  ProgressDomain& domain_;
  LinkCaps caps_;
};

}  // namespace test
GLOO_NAMESPACE_END
