#include "tests/support/fake_channel.h"

#include <algorithm>
#include <cstring>

#include "gloo/common/error.h"
#include "gloo/internal/check.h"

GLOO_NAMESPACE_BEGIN
namespace testing_support {

using internal::Cause;
using internal::CausePtr;
using internal::Operation;

class FakeChannel final : public internal::Channel {
 public:
  FakeChannel(FakeWorld& world, int rank) : world_(world), rank_(rank) {}

  void postSend(Operation& op, int dst, uint64_t slot, const void* data,
                size_t bytes, uint64_t check, bool) override {
    start(op, true, dst, slot, const_cast<void*>(data), bytes, check);
  }
  void postRecv(Operation& op, int src, uint64_t slot, void* data, size_t bytes,
                uint64_t check) override {
    start(op, false, src, slot, data, bytes, check);
  }

  bool waitUntil(const std::function<bool()>& ready,
                 Deadline deadline) override {
    std::unique_lock lock(world_.mutex_);
    while (true) {
      throwIfFailed();
      world_.deliverSome(false);
      if (ready()) {
        return true;
      }
      if (!world_.matches_.empty()) {
        continue;
      }
      if (deadline.never()) {
        world_.changed_.wait(lock);
      } else if (world_.changed_.wait_until(lock, deadline.at()) ==
                 std::cv_status::timeout) {
        return ready();
      }
    }
  }

  void poll() override {
    std::lock_guard lock(world_.mutex_);
    world_.deliverSome(false);
  }

  void cancel(Operation& op) override {
    std::lock_guard lock(world_.mutex_);
    if (op.pending()) {
      world_.end(op);
      world_.finish(op, Operation::State::kCancelled);
    }
  }

  void fail(CausePtr cause) override {
    std::lock_guard lock(world_.mutex_);
    world_.failAll(std::move(cause));
  }

  CausePtr failure() const override {
    std::lock_guard lock(world_.mutex_);
    return world_.cause_;
  }

  int rank() const override { return rank_; }
  int size() const override { return world_.size(); }
  std::string linkName(int) const override { return "fake"; }
  size_t eagerBytes() const override {
    return world_.options_.synchronous ? 0 : SIZE_MAX;
  }

 private:
  void throwIfFailed() {
    if (world_.cause_ != nullptr) {
      internal::throwCause(*world_.cause_, "");
    }
  }

  void start(Operation& op, bool isSend, int peer, uint64_t slot, void* data,
             size_t bytes, uint64_t check) {
    std::lock_guard lock(world_.mutex_);
    throwIfFailed();
    if (op.pending() || peer < 0 || peer >= size() || peer == rank_) {
      throw InvalidOperationException("fake channel: bad operation");
    }
    op.isSend = isSend;
    op.peer = peer;
    op.slot = slot;
    op.data = static_cast<char*>(data);
    op.bytes = bytes;
    op.bytesDone = 0;
    op.check = check;
    op.state = Operation::State::kPending;
    world_.pending_++;
    world_.post(op, isSend ? rank_ : peer, isSend ? peer : rank_);
  }

  FakeWorld& world_;
  const int rank_;
};

FakeWorld::FakeWorld(int size, FakeOptions options)
    : options_(options), random_(options.seed) {
  for (int rank = 0; rank < size; rank++) {
    channels_.push_back(std::make_unique<FakeChannel>(*this, rank));
  }
  matches_.reserve(1024);
}

FakeWorld::~FakeWorld() = default;

internal::Channel& FakeWorld::channel(int rank) {
  return *channels_.at(static_cast<size_t>(rank));
}

size_t FakeWorld::pending() {
  std::lock_guard lock(mutex_);
  return pending_;
}

size_t FakeWorld::posted() {
  std::lock_guard lock(mutex_);
  return posted_;
}

FakeWorld::Queue& FakeWorld::queue(int from, int to, uint64_t slot) {
  for (Queue& q : queues_) {
    if (q.from == from && q.to == to && q.slot == slot) {
      return q;
    }
  }
  queues_.push_back({from, to, slot, {}, {}});
  queues_.back().sends.reserve(256);
  queues_.back().recvs.reserve(256);
  return queues_.back();
}

void FakeWorld::post(Operation& op, int from, int to) {
  posted_++;
  Queue& q = queue(from, to, op.slot);
  if (op.isSend && !options_.synchronous) {
    bytes_.emplace_back(op.data, op.data + op.bytes);
    auto copy = std::make_unique<Operation>();
    copy->data = bytes_.back().data();
    copy->bytes = op.bytes;
    copy->check = op.check;
    copy->state = Operation::State::kPending;
    pending_++;
    q.sends.push_back(copy.get());
    copies_.push_back(std::move(copy));
    op.bytesDone = op.bytes;
    finish(op, Operation::State::kDone);
  } else {
    (op.isSend ? q.sends : q.recvs).push_back(&op);
  }
  matchUp(q);
  if (options_.failAfter != 0 && posted_ == options_.failAfter) {
    auto cause = std::make_shared<Cause>();
    cause->kind = Cause::Kind::kPeerLost;
    cause->culprit = from;
    cause->text = "injected failure";
    failAll(cause);
  }
}

void FakeWorld::matchUp(Queue& q) {
  while (!q.sends.empty() && !q.recvs.empty()) {
    Operation* send = q.sends.front();
    Operation* recv = q.recvs.front();
    q.sends.erase(q.sends.begin());
    q.recvs.erase(q.recvs.begin());
    if (send->bytes > recv->bytes ||
        !internal::checksAgree(recv->check, send->check)) {
      auto cause = std::make_shared<Cause>();
      cause->kind = Cause::Kind::kMismatch;
      cause->text = internal::checksAgree(recv->check, send->check)
                        ? "a message is longer than its receive"
                        : internal::describeDisagreement({q.to, recv->check},
                                                         {q.from, send->check});
      q.sends.push_back(send);
      q.recvs.push_back(recv);
      failAll(cause);
      return;
    }
    matches_.push_back({send, recv});
  }
  changed_.notify_all();
}

void FakeWorld::deliverSome(bool all) {
  while (!matches_.empty() && cause_ == nullptr) {
    const size_t i = options_.shuffle ? random_() % matches_.size() : 0;
    const Match match = matches_[i];
    matches_.erase(matches_.begin() + static_cast<long>(i));
    deliver(match);
    if (!all) {
      return;
    }
  }
}

void FakeWorld::deliver(const Match& match) {
  if (match.send->bytes > 0) {
    std::memcpy(match.recv->data, match.send->data, match.send->bytes);
  }
  match.send->bytesDone = match.send->bytes;
  match.recv->bytesDone = match.send->bytes;
  finish(*match.send, Operation::State::kDone);
  finish(*match.recv, Operation::State::kDone);
}

void FakeWorld::finish(Operation& op, Operation::State state) {
  pending_--;
  op.state = state;
  changed_.notify_all();
}

// Forgets a pending operation, wherever it is.
void FakeWorld::end(Operation& op) {
  for (Queue& q : queues_) {
    std::erase(q.sends, &op);
    std::erase(q.recvs, &op);
  }
  // The other side of a match that is called off waits for ever.
  std::erase_if(matches_,
                [&](const Match& m) { return m.send == &op || m.recv == &op; });
}

void FakeWorld::failAll(CausePtr cause) {
  if (cause_ != nullptr) {
    return;
  }
  cause_ = std::move(cause);
  for (Queue& q : queues_) {
    for (auto* list : {&q.sends, &q.recvs}) {
      for (Operation* op : *list) {
        finish(*op, Operation::State::kFailed);
      }
      list->clear();
    }
  }
  for (const Match& m : matches_) {
    finish(*m.send, Operation::State::kFailed);
    finish(*m.recv, Operation::State::kFailed);
  }
  matches_.clear();
  changed_.notify_all();
}

}  // namespace testing_support
GLOO_NAMESPACE_END
