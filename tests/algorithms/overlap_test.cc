// Receiving a segment, reducing the one before it and sending its predecessor
// overlap: one rank of a ring on a channel where nothing happens by itself.
// What is only copied is so when messages are under way.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "algorithms/state.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

using internal::Operation;

// Rank 1 of 3. When its caller waits, one operation is completed, the oldest of
// its kind: a receive, unless there are more than a few sends.
class SlowChannel final : public internal::Channel {
 public:
  void postSend(Operation& op, int dst, uint64_t slot, const void* data,
                size_t bytes, uint64_t, bool) override {
    start(op, dst, slot, const_cast<void*>(data), bytes);
    sends.push_back(&op);
  }
  void postRecv(Operation& op, int src, uint64_t slot, void* data, size_t bytes,
                uint64_t) override {
    start(op, src, slot, data, bytes);
    recvs.push_back(&op);
  }
  bool waitUntil(const std::function<bool()>& ready, Deadline) override {
    while (!ready()) {
      const bool sent = recvs.empty() || sends.size() > 4;
      std::vector<Operation*>& list = sent ? sends : recvs;
      if (list.empty()) {
        return false;
      }
      received += sent ? 0 : 1;
      Operation& op = *list.front();
      list.erase(list.begin());
      op.bytesDone = op.bytes;
      op.state = Operation::State::kDone;
    }
    return true;
  }
  void poll() override {}
  void cancel(Operation& op) override {
    op.state = Operation::State::kCancelled;
  }
  void fail(internal::CausePtr) override {}
  internal::CausePtr failure() const override { return nullptr; }
  int rank() const override { return 1; }
  int size() const override { return 3; }
  std::string linkName(int) const override { return "slow"; }
  size_t eagerBytes() const override { return 0; }

  // Under way.
  std::vector<Operation*> sends;
  std::vector<Operation*> recvs;
  size_t received = 0;

 private:
  static void start(Operation& op, int peer, uint64_t slot, void* data,
                    size_t bytes) {
    op.peer = peer;
    op.slot = slot;
    op.data = static_cast<char*>(data);
    op.bytes = bytes;
    op.state = Operation::State::kPending;
  }
};

TEST(Overlap, ARingReceivesReducesAndSendsAtTheSameTime) {
  constexpr size_t kSegments = 8;  // per block
  constexpr size_t kBlocks = 3;
  constexpr size_t kSegmentBytes = 64;
  std::vector<char> in(kBlocks * kSegments * kSegmentBytes);
  std::vector<char> out(in.size());
  SlowChannel channel;
  State state(channel, internal::Profile(), "");

  const auto isSum = [&](const Operation* op) {
    return op->data >= out.data() && op->data < out.data() + out.size();
  };
  size_t reductions = 0;
  size_t overlapped = 0;
  size_t receivedBeforeFirstSum = 0;
  const internal::ReduceFunction reduce = [&](void*, const void*, const void*,
                                              size_t) {
    const bool sendsSum =
        std::any_of(channel.sends.begin(), channel.sends.end(), isSum);
    reductions++;
    overlapped += sendsSum && !channel.recvs.empty() ? 1 : 0;
    receivedBeforeFirstSum += sendsSum ? 0 : 1;
  };
  Request request;
  request.collective = Collective::kAllreduce;
  request.counts.count = in.size();
  request.maxSegmentBytes = kSegmentBytes;
  request.forced = "ring";
  Arguments arguments;
  arguments.input = in.data();
  arguments.output = out.data();
  arguments.function = &reduce;
  arguments.prefix = 1;
  arguments.timeout = std::chrono::seconds(60);
  state.run(request, arguments);

  EXPECT_EQ((kBlocks - 1) * kSegments, reductions);
  EXPECT_EQ(2 * (kBlocks - 1) * kSegments, channel.received);
  // The first sums leave long before the block is complete; from then on a sum
  // is on its way and a segment is awaited whenever one is reduced.
  EXPECT_LE(receivedBeforeFirstSum, kSegments / 2);
  EXPECT_GE(overlapped, reductions - kSegments / 2);
}

// Where everything comes at a glance.
class PromptChannel final : public internal::Channel {
 public:
  void postSend(Operation& op, int, uint64_t, const void*, size_t bytes,
                uint64_t, bool more) override {
    follows.push_back(more);
    end(op, bytes);
  }
  void postRecv(Operation& op, int, uint64_t, void*, size_t bytes,
                uint64_t) override {
    op.bytes = bytes;
    op.state = Operation::State::kPending;
    receives.push_back(&op);
  }
  bool glance(const std::function<bool()>& ready) override {
    glances++;
    for (Operation* op : std::exchange(receives, {})) {
      end(*op, op->bytes);
    }
    return ready();
  }
  bool waitUntil(const std::function<bool()>&, Deadline) override {
    ADD_FAILURE() << "a wait with a deadline";
    return false;
  }
  void poll() override {}
  void cancel(Operation&) override {}
  void fail(internal::CausePtr) override {}
  internal::CausePtr failure() const override { return nullptr; }
  int rank() const override { return 1; }
  int size() const override { return 2; }
  std::string linkName(int) const override { return "prompt"; }
  size_t eagerBytes() const override { return 0; }

  std::vector<Operation*> receives;
  std::vector<bool> follows;  // of each send, what it was told
  int glances = 0;

 private:
  static void end(Operation& op, size_t bytes) {
    op.bytesDone = bytes;
    op.state = Operation::State::kDone;
  }
};

// Rank 1 of 2.
void allreduceInPlace(PromptChannel& channel, std::vector<char> data,
                      size_t segmentBytes, const char* algorithm) {
  State state(channel, internal::Profile(), "");
  const internal::ReduceFunction reduce = [](void*, const void*, const void*,
                                             size_t) {};
  Request request;
  request.collective = Collective::kAllreduce;
  request.counts.count = data.size();
  request.inPlace = true;
  request.maxSegmentBytes = segmentBytes;
  request.forced = algorithm;
  Arguments arguments;
  arguments.input = arguments.output = data.data();
  arguments.function = &reduce;
  arguments.prefix = 1;
  arguments.timeout = std::chrono::seconds(60);
  state.run(request, arguments);
}

TEST(Overlap, WhatComesAtAGlanceIsNotWaitedFor) {
  PromptChannel channel;
  allreduceInPlace(channel, std::vector<char>(8), 8, nullptr);
  EXPECT_EQ(1, channel.glances);
}

// Long segments, so that a transport can let them leave together.
TEST(Overlap, ASendKnowsWhetherAnotherOneFollows) {
  constexpr size_t kSegment = 16 << 10;
  constexpr size_t kSegments = 4;
  PromptChannel channel;
  allreduceInPlace(channel, std::vector<char>(kSegments * kSegment), kSegment,
                   "recursive_doubling");
  EXPECT_EQ((std::vector<bool>{true, true, true, false}), channel.follows);

  PromptChannel brief;
  allreduceInPlace(brief, std::vector<char>(kSegments * 64), 64,
                   "recursive_doubling");
  EXPECT_EQ(std::vector<bool>(kSegments, false), brief.follows);
}

// Its own block is copied while what it has sent is on its way.
TEST(Overlap, AnAllgatherSendsItsBlockBeforeItCopiesIt) {
  constexpr size_t kBytes = 4096;
  constexpr size_t kSegments = 4;
  ExpandOptions options;
  options.segmentBytes = kBytes / kSegments;
  for (const AlgorithmInfo& info : algorithmsOf(Collective::kAllgather)) {
    for (int size = 2; size <= 9; size++) {
      const Setting setting{1, size, 0, 2};
      if (!info.offers(setting)) {
        continue;
      }
      Counts counts;
      counts.count = kBytes;
      const Program program = expand(info.schedule(setting),
                                     layoutsOf(info, setting, counts), options);
      size_t sent = 0;
      for (const Action& action : program.actions) {
        if (action.kind == ActionKind::kCopy) {
          break;
        }
        sent += action.kind == ActionKind::kSend ? 1 : 0;
      }
      EXPECT_LE(kSegments, sent) << info.name << ", " << size << " ranks";
    }
  }
}

}  // namespace
}  // namespace algorithms
GLOO_NAMESPACE_END
