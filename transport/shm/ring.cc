#include "transport/shm/ring.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {
namespace {

// The flags of sleepers, and what is looked at beside them: see ring.h.
constexpr auto kTotalOrder = std::memory_order_seq_cst;

uint64_t roundUp(uint64_t bytes) { return (bytes + kLine - 1) & ~(kLine - 1); }

// The position at which a chunk begins: at a line, and in one piece. Both sides
// reckon it, neither reads it from the other.
uint64_t chunkStart(uint64_t position, size_t chunk, uint32_t byteCount) {
  const uint64_t offset = position & (byteCount - 1);
  return offset + chunk > byteCount ? position + (byteCount - offset)
                                    : position;
}

bool takeFlag(std::atomic<uint32_t>& flag, uint32_t& taken) {
  return flag.load(kTotalOrder) != kAwake &&
         (taken = flag.exchange(kAwake, kTotalOrder)) != kAwake;
}

bool wakeOnFlag(std::atomic<uint32_t>& flag, uint32_t taken) {
  if (taken != kOnFlag) {
    return false;
  }
  base::wakeShared(flag);
  return true;
}

void putFlag(std::atomic<uint32_t>& flag, base::FutexWords* words) {
  flag.store(words != nullptr ? kOnFlag : kInEpoll, kTotalOrder);
  if (words != nullptr) {
    words->add(flag, kOnFlag, true);
  }
}

}  // namespace

Cell* RingProducer::begin(size_t chunk, char** place) {
  const uint64_t start = chunkStart(producedBytes_, chunk, ring_.byteCount);
  nextBytes_ = start + roundUp(chunk);
  if (!fits(nextBytes_ - producedBytes_) &&
      (!refresh() || !fits(nextBytes_ - producedBytes_))) {
    return nullptr;
  }
  *place = ring_.bytes + (start & (ring_.byteCount - 1));
  return &ring_.cells[produced_ & (ring_.cellCount - 1)];
}

bool RingProducer::commit() {
  Cell& cell = ring_.cells[produced_ & (ring_.cellCount - 1)];
  producedBytes_ = nextBytes_;
  cell.sequence.store(static_cast<uint32_t>(++produced_), kTotalOrder);
  return takeFlag(ring_.control->asleep, sleep_);
}

bool RingProducer::wake() { return wakeOnFlag(ring_.control->asleep, sleep_); }

// Looks at what the consumer has given back; false when it is impossible.
bool RingProducer::refresh() {
  const uint64_t cells = ring_.control->consumedCells.load(kTotalOrder);
  const uint64_t bytes = ring_.control->consumedBytes.load(kTotalOrder);
  if (cells - consumedCells_ > produced_ - consumedCells_ ||
      bytes - consumedBytes_ > producedBytes_ - consumedBytes_) {
    broken_ = true;
    return false;
  }
  consumedCells_ = cells;
  consumedBytes_ = bytes;
  return true;
}

bool RingProducer::armForRoom(base::FutexWords* words) {
  putFlag(ring_.control->waits, words);
  const uint64_t cells = consumedCells_;
  const uint64_t bytes = consumedBytes_;
  return !refresh() || cells != consumedCells_ || bytes != consumedBytes_;
}

void RingProducer::disarm() {
  ring_.control->waits.store(kAwake, std::memory_order_relaxed);  // a hint
}

const char* RingConsumer::bytesOf(size_t chunk) const {
  return ring_.bytes + (chunkStart(consumedBytes_, chunk, ring_.byteCount) &
                        (ring_.byteCount - 1));
}

void RingConsumer::take(size_t chunk) {
  consumedBytes_ =
      chunkStart(consumedBytes_, chunk, ring_.byteCount) + roundUp(chunk);
  consumed_++;
}

// A producer that sleeps has found the ring at least half full, so what it
// waits for is given back by one of the stores that end a quarter: only those
// have to look whether it sleeps.
bool RingConsumer::publish() {
  // The quarters' numbers differ, if a bit does from a quarter's on: powers of
  // two.
  const bool quarter =
      (published_ ^ consumed_) >= ring_.cellCount / 4 ||
      (publishedBytes_ ^ consumedBytes_) >= ring_.byteCount / 4;
  published_ = consumed_;
  publishedBytes_ = consumedBytes_;
  const auto order = quarter ? kTotalOrder : std::memory_order_release;
  ring_.control->consumedBytes.store(consumedBytes_, order);
  ring_.control->consumedCells.store(consumed_, order);
  return quarter && takeFlag(ring_.control->waits, sleep_);
}

bool RingConsumer::wake() { return wakeOnFlag(ring_.control->waits, sleep_); }

bool RingConsumer::arm(base::FutexWords* words) {
  putFlag(ring_.control->asleep, words);
  const Cell& cell = ring_.cells[consumed_ & (ring_.cellCount - 1)];
  return cell.sequence.load(kTotalOrder) ==
         static_cast<uint32_t>(consumed_ + 1);
}

void RingConsumer::disarm() {
  ring_.control->asleep.store(kAwake, std::memory_order_relaxed);  // a hint
}

}  // namespace transport::shm
GLOO_NAMESPACE_END
