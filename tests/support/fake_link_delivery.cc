// What a fake link tells its handler, a little at each poll, in an order that
// is drawn.
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "tests/support/fake_link_parts.h"

GLOO_NAMESPACE_BEGIN
namespace test {

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
  if (factory_.options.shape == FakeShape::kMixed && factory_.chance(20)) {
    handler_->onReadRefused(read.token);
    return true;
  }
  if (!factory_.capsRef().needsRegions) {
    // By the kernel: whoever has announced it may have failed, and be gone.
    const iovec to{read.local, read.bytes};
    const iovec from{reinterpret_cast<void*>(read.remote.address),  // NOLINT
                     read.bytes};
    if (::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) !=
        static_cast<ssize_t>(read.bytes)) {
      lose("the peer's memory is gone");
      return true;
    }
  } else if (!FakeHub::instance().copy(read.remote, read.local, read.bytes,
                                       false)) {
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
  const bool dry = mine().inbox.empty() || isHeld(*mine().inbox.front());
  if (wire_->lost || (dry && theirs().gone)) {
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
    if (count == watch.alterAtFrame ||
        watch.alterAtFrame == FakeWatch::kEveryFrame) {
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
    if (isHeld(event)) {
      watch.isHalfway = true;
      return false;
    }
    const bool half =
        watch.holdHalfway && event.header.type == FrameType::kData;
    const size_t piece =
        std::min<size_t>((half ? event.bytes / 2 : event.bytes) - event.done,
                         1 + factory_.random() % (event.bytes + 1));
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

}  // namespace test
GLOO_NAMESPACE_END
