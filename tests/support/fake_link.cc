// What a fake link's owner calls; what it delivers is in
// fake_link_delivery.cc.
#include "tests/support/fake_link.h"

#include <algorithm>

#include "tests/support/fake_link_parts.h"

GLOO_NAMESPACE_BEGIN
namespace test {

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

namespace {

bool isEager(const FrameHeader& h) {
  return h.type == FrameType::kData &&
         (h.flags & (kDirect | kBound | kPut | kReply)) == 0;
}

}  // namespace

void FakeLink::watchSend(const FrameHeader& header) {
  FakeWatch& watch = *factory_.options.watch;
  if (header.type != FrameType::kData &&
      header.payloadBytes > kMaxControlPayload) {
    watch.controlTooLong++;
  }
  const size_t quantum = factory_.options.creditQuantum;
  watch.creditsNotWhole += header.credits % quantum != 0;
  if (isEager(header)) {
    eagerUsed_ +=
        std::max<size_t>((header.payloadBytes + quantum - 1) / quantum, 1) *
        quantum;
    watch.framesTooLong += header.payloadBytes > factory_.options.eagerBytes;
    watch.creditsExceeded += eagerUsed_ > eagerGranted_;
  } else if (header.payloadBytes > factory_.options.maxFrameBytes) {
    watch.framesTooLong++;
  }
}

bool FakeLink::send(const FrameHeader& header, const char* payload,
                    void* token) {
  watchSend(header);
  if (header.type == FrameType::kAdvert) {
    auto& most = factory_.options.watch->mostAdvert;
    most = std::max<uint32_t>(most, header.index);  // (of one rank, so far)
  }
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

bool FakeLink::reads(RemoteMemory, size_t, bool) const {
  return factory_.options.shape == FakeShape::kPull ||
         (factory_.options.shape == FakeShape::kMixed && factory_.chance(50));
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
  if (std::atomic<int>& left = factory_.options.watch->withoutMemory;
      left > 0) {
    left--;
    throw std::bad_alloc();
  }
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

bool FakeLink::isHeld(const FakeEvent& event) const {
  return factory_.options.watch->holdHalfway &&
         event.header.type == FrameType::kData && event.begun &&
         event.done >= event.bytes / 2;
}

bool FakeLink::hasWork() const {
  if (handler_ == nullptr) {
    return false;
  }
  std::lock_guard<std::mutex> guard(wire_->mutex);
  return (!mine().inbox.empty() && !isHeld(*mine().inbox.front())) ||
         !mine().completions.empty() || !reads_.empty() || theirs().gone ||
         wire_->lost;
}

}  // namespace test
GLOO_NAMESPACE_END
