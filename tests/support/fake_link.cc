#include "tests/support/fake_link.h"

#include <arpa/inet.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include "gloo/common/error.h"
#include "tests/support/fake_wire.h"
#include "transport/base/device.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace transport::base;  // NOLINT: fakes of that folder

class FakeFactory;

class FakeRegion final : public Region {
 public:
  FakeRegion(char* ptr, size_t bytes, Rights rights)
      : key_(FakeHub::instance().add(ptr, bytes, rights)) {}
  ~FakeRegion() override { FakeHub::instance().remove(key_); }
  uint64_t remoteAddress() const override { return FakeHub::addressOf(key_); }
  uint32_t remoteKey() const override { return key_; }

 private:
  const uint32_t key_;
};

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
    caps_.remoteRead = options.shape == FakeShape::kPull;
    caps_.needsRegions = options.shape != FakeShape::kStream;
    caps_.eagerBytes = options.eagerBytes;
    caps_.creditBytes = options.creditBytes;
    caps_.creditQuantum = options.creditQuantum;
    caps_.maxFrameBytes = options.maxFrameBytes;
    domain_.add(*this);
  }
  ~FakeFactory() override { domain_.remove(*this); }

  std::string kind() const override { return name(options.shape); }
  LinkCaps caps() const override { return caps_; }
  const LinkCaps& capsRef() const { return caps_; }
  std::unique_ptr<PendingLink> prepare(int peers) override;
  std::unique_ptr<Region> registerMemory(void* ptr, size_t bytes, MemoryKind,
                                         Rights rights) override {
    if (options.shape == FakeShape::kStream) {
      return nullptr;
    }
    return std::make_unique<FakeRegion>(static_cast<char*>(ptr), bytes, rights);
  }
  void addStatistics(internal::Statistics&) const override {}

  bool poll() override {
    bell->silence();
    bool moved = false;
    const std::vector<FakeLink*> now(links.begin(), links.end());
    for (FakeLink* link : now) {
      if (links.count(link) != 0) {
        moved |= link->poll();
      }
    }
    return moved;
  }
  int wakeFd() const override { return bell->fd(); }
  bool arm() override {
    return std::any_of(links.begin(), links.end(),
                       [](FakeLink* link) { return link->hasWork(); });
  }

  bool chance(unsigned percent) { return random() % 100 < percent; }

  const FakeOptions options;
  std::mt19937_64 random;
  std::set<FakeLink*> links;
  const std::shared_ptr<Bell> bell = std::make_shared<Bell>();

 private:
  ProgressDomain& domain_;
  LinkCaps caps_;
};

class FakePending final : public PendingLink {
 public:
  explicit FakePending(FakeFactory& factory)
      : factory_(factory), id_(FakeHub::instance().newId()) {}
  std::vector<char> blob() const override {
    std::vector<char> bytes(sizeof(id_));
    std::memcpy(bytes.data(), &id_, sizeof(id_));
    return bytes;
  }
  std::unique_ptr<Link> complete(UniqueFd, const Hello& theirs,
                                 LinkHandler& handler) override {
    uint64_t other = 0;
    if (theirs.blob.size() != sizeof(other)) {
      throw IoException("fake link: the hello has no id");
    }
    std::memcpy(&other, theirs.blob.data(), sizeof(other));
    return std::make_unique<FakeLink>(factory_,
                                      FakeHub::instance().wire(id_, other),
                                      id_ < other ? 0 : 1, handler);
  }

 private:
  FakeFactory& factory_;
  const uint64_t id_;
};

std::unique_ptr<PendingLink> FakeFactory::prepare(int) {
  return std::make_unique<FakePending>(*this);
}

FakeLink::FakeLink(FakeFactory& factory, std::shared_ptr<FakeWire> wire,
                   int side, LinkHandler& handler)
    : factory_(factory),
      wire_(std::move(wire)),
      side_(side),
      handler_(&handler),
      eagerGranted_(factory.options.creditBytes) {
  std::lock_guard<std::mutex> guard(wire_->mutex);
  mine().present = true;
  mine().wake = [bell = factory.bell] { bell->ring(); };
  factory_.links.insert(this);
  factory_.bell->ring();
}

FakeLink::~FakeLink() {
  abandon();
  factory_.links.erase(this);
}

const LinkCaps& FakeLink::caps() const { return factory_.capsRef(); }

void FakeLink::push(FakeEvent event) {
  std::lock_guard<std::mutex> guard(wire_->mutex);
  theirs().inbox.push_back(std::make_shared<FakeEvent>(std::move(event)));
  if (theirs().wake != nullptr) {
    theirs().wake();
  }
}

bool isEager(const FrameHeader& h) {
  return h.type == FrameType::kData &&
         (h.flags & (kDirect | kBound | kPut | kReply)) == 0;
}

void FakeLink::watchSend(const FrameHeader& header) {
  FakeWatch& watch = *factory_.options.watch;
  if (header.type != FrameType::kData &&
      header.payloadBytes > kMaxControlPayload) {
    watch.controlTooLong++;
  }
  if (isEager(header)) {
    eagerUsed_ +=
        std::max<uint64_t>(header.payloadBytes, factory_.options.creditQuantum);
    watch.framesTooLong += header.payloadBytes > factory_.options.eagerBytes;
    watch.creditsExceeded += eagerUsed_ > eagerGranted_;
  } else if (header.payloadBytes > factory_.options.maxFrameBytes) {
    watch.framesTooLong++;
  }
}

bool FakeLink::send(const FrameHeader& header, const char* payload,
                    void* token) {
  watchSend(header);
  FakeEvent event;
  event.header = header;
  event.bytes = header.payloadBytes;
  // Some leave at once; others refer to the caller's memory for a while.
  const bool copy = token == nullptr || factory_.chance(30);
  if (copy) {
    if (event.bytes > 0) {
      event.copied.assign(payload, payload + event.bytes);
    }
  } else {
    event.borrowed = payload;
    event.token = token;
  }
  push(std::move(event));
  return copy;
}

bool FakeLink::write(const char* local, size_t bytes, const Region* region,
                     RemoteMemory remote, uint32_t immediate, void* token) {
  FakeWatch& watch = *factory_.options.watch;
  watch.wrongMemory += region == nullptr && bytes > 0;
  watch.framesTooLong += bytes > factory_.options.maxFrameBytes;
  FakeEvent event;
  event.what = FakeEvent::What::kWrite;
  event.borrowed = local;
  event.bytes = bytes;
  event.remote = remote;
  event.immediate = immediate;
  event.token = token;
  push(std::move(event));
  return false;
}

bool FakeLink::read(char* local, size_t bytes, const Region*,
                    RemoteMemory remote, void* token) {
  factory_.options.watch->framesTooLong +=
      bytes > factory_.options.maxFrameBytes;
  reads_.push_back({local, bytes, remote, token});
  factory_.bell->ring();
  return false;
}

void FakeLink::finish() {
  FakeEvent event;
  event.what = FakeEvent::What::kEnd;
  push(std::move(event));
  std::lock_guard<std::mutex> guard(wire_->mutex);
  mine().ended = true;
}

// The caller holds the wire's mutex.
void FakeLink::dropFrom(Queue::iterator first) {
  auto& queue = theirs().inbox;
  std::for_each(first, queue.end(), [](auto& event) { event->dropped = true; });
  queue.erase(first, queue.end());
}

// The caller holds the wire's mutex. Forgets what is not begun, copies the
// rest of what is.
void FakeLink::dropBorrowed() {
  auto& queue = theirs().inbox;
  auto first = queue.begin();
  if (first != queue.end() && (*first)->begun) {
    FakeEvent& begun = **first;
    if (begun.borrowed != nullptr) {
      begun.copied.assign(begun.borrowed, begun.borrowed + begun.bytes);
      begun.borrowed = nullptr;
      begun.token = nullptr;
    }
    ++first;
  }
  dropFrom(first);
  mine().completions.clear();
}

void FakeLink::finishWith(const FrameHeader& last, const char* payload) {
  handler_ = nullptr;
  reads_.clear();
  {
    std::lock_guard<std::mutex> guard(wire_->mutex);
    dropBorrowed();
    mine().inbox.clear();
  }
  [[maybe_unused]] const bool copied = send(last, payload, nullptr);
  finish();
}

bool FakeLink::flushed() const {
  std::lock_guard<std::mutex> guard(wire_->mutex);
  const auto& queue = theirs().inbox;
  return theirs().gone || wire_->lost ||
         std::all_of(queue.begin(), queue.end(), [](const auto& event) {
           return event->borrowed == nullptr;
         });
}

bool FakeLink::finished() const {
  std::lock_guard<std::mutex> guard(wire_->mutex);
  if (theirs().gone || wire_->lost) {
    return true;
  }
  return mine().ended && mine().endSeen && theirs().ended;
}

void FakeLink::abandon() {
  handler_ = nullptr;
  reads_.clear();
  std::lock_guard<std::mutex> guard(wire_->mutex);
  if (mine().gone) {
    return;
  }
  mine().gone = true;
  mine().inbox.clear();
  // What has left this process arrives, the rest does not.
  auto& queue = theirs().inbox;
  const auto first = std::find_if(
      queue.begin(), queue.end(),
      [](const auto& event) { return event->borrowed != nullptr; });
  dropFrom(first);
  if (theirs().wake != nullptr) {
    theirs().wake();
  }
}

bool FakeLink::hasWork() const {
  if (handler_ == nullptr) {
    return false;
  }
  std::lock_guard<std::mutex> guard(wire_->mutex);
  return !mine().inbox.empty() || !mine().completions.empty() ||
         !reads_.empty() || theirs().gone || wire_->lost;
}

bool FakeLink::poll() {
  bool moved = false;
  for (uint64_t n = factory_.random() % 6; n > 0; n--) {
    bool any = false;
    for (const auto step : {&FakeLink::deliverCompletion,
                            &FakeLink::deliverRead, &FakeLink::deliverEvent}) {
      // A handler may have destroyed this link.
      if (factory_.links.count(this) == 0) {
        return true;
      }
      if (handler_ != nullptr && !factory_.chance(30)) {
        any |= (this->*step)();
      }
    }
    if (factory_.links.count(this) == 0) {
      return true;
    }
    moved |= any;
  }
  return moved;
}

bool FakeLink::deliverCompletion() {
  void* token = nullptr;
  {
    std::lock_guard<std::mutex> guard(wire_->mutex);
    if (mine().completions.empty()) {
      return false;
    }
    token = mine().completions.front();
    mine().completions.pop_front();
  }
  handler_->onComplete(token);
  return true;
}

bool FakeLink::deliverRead() {
  if (reads_.empty()) {
    return false;
  }
  const Read read = reads_.front();
  reads_.pop_front();
  if (!FakeHub::instance().copy(read.remote, read.local, read.bytes, false)) {
    factory_.options.watch->wrongMemory++;
    lose("remote access error");
    return true;
  }
  handler_->onComplete(read.token);
  return true;
}

void FakeLink::lose(const char* why) {
  {
    std::lock_guard<std::mutex> guard(wire_->mutex);
    wire_->lost = true;
    mine().inbox.clear();
    if (theirs().wake != nullptr) {
      theirs().wake();
    }
  }
  LinkHandler* handler = handler_;
  handler_ = nullptr;
  handler->onLost({internal::Cause::Kind::kIo, -1, -1, why}, false);
}

bool FakeLink::deliverEvent() {
  std::unique_lock<std::mutex> lock(wire_->mutex);
  if (wire_->lost || (mine().inbox.empty() && theirs().gone)) {
    lock.unlock();
    lose("the other end is gone");
    return true;
  }
  if (mine().inbox.empty()) {
    return false;
  }
  const std::shared_ptr<FakeEvent> held = mine().inbox.front();
  FakeEvent& event = *held;
  const bool begins = !event.begun;
  const bool farewell = event.what == FakeEvent::What::kEnd ||
                        event.header.type == FrameType::kBye;
  if (farewell && !mine().completions.empty()) {
    lock.unlock();
    return deliverCompletion();  // what the peer has taken is told first
  }
  event.begun = true;
  lock.unlock();
  switch (event.what) {
    case FakeEvent::What::kFrame:
      return deliverFrame(event, begins);
    case FakeEvent::What::kWrite:
      return deliverWrite(event);
    case FakeEvent::What::kEnd:
      break;
  }
  endEvent();
  {
    std::lock_guard<std::mutex> guard(wire_->mutex);
    theirs().endSeen = true;
  }
  LinkHandler* handler = handler_;
  handler_ = nullptr;
  handler->onLost({internal::Cause::Kind::kIo, -1, -1, "ended"}, true);
  return true;
}

// Takes the front out and tells the sender that it is complete.
void FakeLink::endEvent() {
  std::lock_guard<std::mutex> guard(wire_->mutex);
  if (mine().inbox.empty()) {
    return;
  }
  if (void* token = mine().inbox.front()->token; token != nullptr) {
    theirs().completions.push_back(token);
  }
  mine().inbox.pop_front();
  if (theirs().wake != nullptr) {
    theirs().wake();
  }
}

bool FakeLink::deliverFrame(FakeEvent& event, bool begins) {
  FakeWatch& watch = *factory_.options.watch;
  if (begins) {
    const uint64_t count = ++watch.frames;
    if (count == watch.loseAtFrame) {
      lose("lost by the test");
      return true;
    }
    if (count == watch.alterAtFrame) {
      watch.alter(event.header);
      event.header.payloadBytes = static_cast<uint32_t>(event.bytes);
    }
    eagerGranted_ += event.header.credits;
    if (event.bytes > 0) {
      const FrameHeader header = event.header;
      char* const place = handler_->onPayload(header);
      if (handler_ == nullptr || place == nullptr) {
        handler_ = nullptr;  // refused: nothing more is reported
        return true;
      }
      event.place = place;
    }
  }
  if (event.done < event.bytes) {
    std::lock_guard<std::mutex> guard(wire_->mutex);
    if (event.dropped) {
      return true;  // the sender has taken it back
    }
    const size_t piece = std::min<size_t>(
        event.bytes - event.done, 1 + factory_.random() % (event.bytes + 1));
    std::memcpy(event.place + event.done, event.from() + event.done, piece);
    event.done += piece;
  }
  if (event.done == event.bytes) {
    const FrameHeader header = event.header;
    const char* const place = event.place;
    endEvent();
    handler_->onFrame(header, place);
  }
  return true;
}

bool FakeLink::deliverWrite(FakeEvent& event) {
  bool good = true;
  uint32_t immediate = kNoImmediate;
  {
    std::lock_guard<std::mutex> guard(wire_->mutex);
    if (event.dropped) {
      return true;
    }
    immediate = event.immediate;
    good = FakeHub::instance().copy(
        event.remote, const_cast<char*>(event.from()), event.bytes, true);
  }
  if (!good && event.bytes > 0) {
    factory_.options.watch->wrongMemory++;
    lose("remote access error");
    return true;
  }
  endEvent();
  if (immediate != kNoImmediate) {
    handler_->onWritten(immediate);
  }
  return true;
}

}  // namespace

std::string name(FakeShape shape) {
  switch (shape) {
    case FakeShape::kStream:
      return "fake_stream";
    case FakeShape::kPush:
      return "fake_push";
    default:
      return "fake_pull";
  }
}

DeviceMaker fakeDevices(const FakeOptions& options) {
  auto count = std::make_shared<std::atomic<uint64_t>>(0);
  return [options, count] {
    FakeOptions own = options;
    own.seed += 1000 * ++*count;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return std::make_shared<Device>(
        DeviceInfo{name(options.shape), {}},
        SocketAddress(reinterpret_cast<sockaddr*>(&address), sizeof(address)),
        [own](ProgressDomain& domain) {
          return std::make_unique<FakeFactory>(domain, own);
        });
  };
}

}  // namespace test
GLOO_NAMESPACE_END
