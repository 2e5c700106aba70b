#include "tests/multiprocess/soak_memory.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "gloo/transport/pair.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

constexpr uint64_t kKeys = uint64_t{1} << 41;
constexpr uint64_t kNotes = uint64_t{1} << 42;
constexpr uint64_t kUntouched = 0xa5a5a5a5a5a5a5a5;

// A key and its length take less.
constexpr size_t kKeyBytes = 255;

}  // namespace

BoundRing::BoundRing(const std::shared_ptr<Context>& context, uint64_t stream)
    : rank_(context->rank), size_(context->size) {
  if (size_ == 1) {
    return;
  }
  const int slot = static_cast<int>(1000 + 2 * stream);
  auto& left = context->getPair((rank_ + size_ - 1) % size_);
  auto& right = context->getPair((rank_ + 1) % size_);
  in_ = left->createRecvBuffer(slot, got_.data(), 8 * kMost);
  out_ = right->createSendBuffer(slot, sent_.data(), 8 * kMost);
  noteIn_ = right->createRecvBuffer(slot + 1, &heard_, sizeof(heard_));
  noteOut_ = left->createSendBuffer(slot + 1, &said_, sizeof(said_));
}

void BoundRing::shift(const Step& step) {
  if (size_ == 1) {
    return;
  }
  const int source = (rank_ + size_ - 1) % size_;
  const size_t elements = std::min(step.elements, kMost);
  const size_t pieces = 1 + step.random % 4;
  const size_t piece = elements / pieces;
  for (size_t i = 0; i < elements; i++) {
    sent_[i] = input(step.number, rank_, i);
  }
  for (size_t i = 0; i < pieces; i++) {
    const size_t begin = 8 * i * piece;
    const size_t end = i + 1 < pieces ? begin + 8 * piece : 8 * elements;
    out_->send(begin, end - begin, begin);
  }
  for (size_t i = 0; i < pieces; i++) {
    in_->waitRecv();
  }
  check(step, {got_.begin(), got_.begin() + static_cast<long>(elements)},
        [&](size_t i) { return input(step.number, source, i); });
  said_ = step.number;
  noteOut_->send();
  noteIn_->waitRecv();
  EXPECT_EQ(heard_, step.number);
  noteOut_->waitSend();
  for (size_t i = 0; i < pieces; i++) {
    out_->waitSend();
  }
}

ExportedMemory::ExportedMemory(std::shared_ptr<Context> context,
                               uint64_t stream)
    : context_(std::move(context)),
      sharedBuffer_(
          context_->createUnboundBuffer(shared_.data(), 8 * shared_.size())),
      ownBuffer_(context_->createUnboundBuffer(own_.data(), 8 * own_.size())),
      notes_(context_->createUnboundBuffer(nullptr, 0)),
      keys_(static_cast<size_t>(context_->size)) {
  const std::string mine = sharedBuffer_->getRemoteKey()->serialize();
  EXPECT_LT(mine.size(), kKeyBytes);
  // Its length, and the key.
  std::string said = static_cast<char>(mine.size()) + mine;
  std::string heard(kKeyBytes, '\0');
  auto out = context_->createUnboundBuffer(said.data(), said.size());
  auto in = context_->createUnboundBuffer(heard.data(), heard.size());
  for (int peer = 0; peer < context_->size; peer++) {
    if (peer != context_->rank) {
      out->send(peer, kKeys + stream);
    }
  }
  for (int peer = 0; peer < context_->size; peer++) {
    if (peer != context_->rank) {
      in->recv(peer, kKeys + stream);
      EXPECT_TRUE(in->waitRecv());
      keys_[static_cast<size_t>(peer)] = context_->deserializeRemoteKey(
          heard.substr(1, static_cast<uint8_t>(heard[0])));
    }
  }
  for (int i = 1; i < context_->size; i++) {
    EXPECT_TRUE(out->waitSend());
  }
}

ExportedMemory::Part ExportedMemory::partOf(const Step& step) const {
  const int size = context_->size;
  const int by = 1 + step.root(size - 1);
  Part part;
  part.elements = std::min(step.elements, kMost - 2);
  part.begin = 1 + (step.random >> 8) % (kMost - 1 - part.elements);
  part.user = (context_->rank + size - by) % size;
  part.owner = (context_->rank + by) % size;
  return part;
}

void ExportedMemory::say(int peer, const Step& step) {
  notes_->send(peer, kNotes + step.number);
  EXPECT_TRUE(notes_->waitSend());
}

void ExportedMemory::hear(int peer, const Step& step) {
  notes_->recv(peer, kNotes + step.number);
  EXPECT_TRUE(notes_->waitRecv());
}

void ExportedMemory::put(const Step& step) {
  if (context_->size == 1) {
    return;
  }
  const Part part = partOf(step);
  const auto first = shared_.begin() + static_cast<long>(part.begin);
  const auto last = first + static_cast<long>(part.elements);
  std::fill(first - 1, last + 1, kUntouched);
  say(part.user, step);
  for (size_t i = 0; i < part.elements; i++) {
    own_[i] = input(step.number, context_->rank, i);
  }
  hear(part.owner, step);
  ownBuffer_->put(*keys_[static_cast<size_t>(part.owner)], step.number, 0,
                  8 * part.begin, 8 * part.elements);
  EXPECT_TRUE(ownBuffer_->waitSend());
  say(part.owner, step);  // it has the bytes
  hear(part.user, step);
  check(step, {first, last},
        [&](size_t i) { return input(step.number, part.user, i); });
  EXPECT_EQ(*(first - 1), kUntouched) << step.number;
  EXPECT_EQ(*last, kUntouched) << step.number;
}

void ExportedMemory::get(const Step& step) {
  if (context_->size == 1) {
    return;
  }
  const Part part = partOf(step);
  for (size_t i = 0; i < part.elements; i++) {
    shared_[part.begin + i] = input(step.number, context_->rank, i);
  }
  say(part.user, step);
  const auto first = own_.begin() + 1;
  const auto last = first + static_cast<long>(part.elements);
  std::fill(first - 1, last + 1, kUntouched);
  hear(part.owner, step);
  ownBuffer_->get(*keys_[static_cast<size_t>(part.owner)], step.number, 8,
                  8 * part.begin, 8 * part.elements);
  EXPECT_TRUE(ownBuffer_->waitSend());
  say(part.owner, step);  // it may change them
  hear(part.user, step);
  check(step, {first, last},
        [&](size_t i) { return input(step.number, part.owner, i); });
  EXPECT_EQ(own_[0], kUntouched) << step.number;
  EXPECT_EQ(*last, kUntouched) << step.number;
}

}  // namespace test
GLOO_NAMESPACE_END
