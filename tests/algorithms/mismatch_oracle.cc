#include "tests/algorithms/mismatch_oracle.h"

#include <algorithm>
#include <cstdint>

#include "algorithms/direct_sizes.h"
#include "gloo/internal/check.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace algorithms;  // NOLINT: everything here is about it
using internal::ElementType;

constexpr size_t kSlotBytes = 128 << 10;  // of lanes

ElementType elementTypeOf(RankCall::Type type) {
  switch (type) {
    case RankCall::kInt32:
      return ElementType::kInt32;
    case RankCall::kInt64:
      return ElementType::kInt64;
    case RankCall::kFloat:
      return ElementType::kFloat32;
    case RankCall::kForeign8:
      break;
  }
  return ElementType::kUnknown;
}

// What the functions of the API make of such a call. Borrows the offsets.
Request requestOf(const RankCall& call, const std::vector<size_t>& offsets) {
  Request request;
  request.collective = call.collective;
  request.radix = call.base;
  request.forced = call.call.algorithm;
  if (call.collective == Collective::kBarrier) {
    request.counts.count = 1;
    request.inPlace = true;
    return request;
  }
  request.type = elementTypeOf(call.type);
  request.reduction = reduces(call.collective) ? call.call.reduction
                                               : internal::Reduction::kUnknown;
  const bool isLong =
      call.type == RankCall::kInt64 || call.type == RankCall::kForeign8;
  request.elementSize = isLong ? 8 : 4;
  request.root = isRooted(call.collective) ? call.call.root : 0;
  if (isV(call.collective)) {
    request.counts.sendOffsets = request.counts.recvOffsets = offsets.data();
  } else {
    request.counts.count = call.call.count;
  }
  request.vectors = call.call.vectors;
  if (reduces(call.collective)) {
    request.maxSegmentBytes = call.call.segment;
  }
  return request;
}

// Whose lines a rank reads before it returns. What takes several rounds reads
// all: none is written before everybody has written the one before.
std::vector<int> readsOf(const RankCall& call, const Request& request, int rank,
                         int size) {
  const bool isRooted = call.collective == Collective::kBroadcast ||
                        call.collective == Collective::kReduce;
  const bool several =
      call.before > 0 || request.counts.count * request.elementSize > size_t{1}
                                                                          << 20;
  std::vector<int> reads;
  for (int other = 0; other < size; other++) {
    const bool isNeeded = call.collective == Collective::kBroadcast
                              ? other == request.root
                              : rank == request.root;
    if (other != rank && (several || !isRooted || isNeeded)) {
      reads.push_back(other);
    }
  }
  return reads;
}

}  // namespace

MismatchOracle::MismatchOracle(const std::vector<RankCall>& calls, bool direct)
    : ranks_(calls.size()) {
  for (size_t rank = 0; rank < calls.size(); rank++) {
    prepare(static_cast<int>(rank), calls[rank], direct);
  }
  readLines();
  while (step()) {
  }
  tellAwaited();
}

Expected MismatchOracle::expected() const {
  if (contradicts_) {
    return Expected::kMismatch;
  }
  bool differ = false;
  for (size_t i = 0; i < ranks_.size(); i++) {
    const auto& done = ranks_[i].done;
    if (waits_ || std::find(done.begin(), done.end(), false) != done.end()) {
      return Expected::kTimeout;
    }
    differ = differ || !agree(0, i);
  }
  // Lines stay where they are. Of what sends no message nothing stays.
  return isDirect() && differ ? Expected::kNextMismatch : Expected::kSuccess;
}

bool MismatchOracle::isDirect() const {
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [](const Rank& rank) { return rank.isDirect; });
}

void MismatchOracle::prepare(int rank, const RankCall& call, bool direct) {
  const int size = static_cast<int>(ranks_.size());
  // A call of no elements is over before the next one, unless it is direct.
  const auto offsetsOf = [&](const RankCall& c) {
    std::vector<size_t> offsets;
    for (int i = 0; i <= size; i++) {
      offsets.push_back(static_cast<size_t>(i) * c.call.count);
    }
    return offsets;
  };
  Rank& self = ranks_[static_cast<size_t>(rank)];
  self.sentTo.assign(ranks_.size(), 0);
  const RankCall first = call.before > 0 ? emptyOf(call) : call;
  const std::vector<size_t> firstOffsets = offsetsOf(first);
  const Request firstRequest = requestOf(first, firstOffsets);
  if (direct && first.call.algorithm == nullptr &&
      offersDirect(firstRequest, size, kSlotBytes)) {
    self.isDirect = true;
    self.reads = readsOf(call, firstRequest, rank, size);
    self.word =
        internal::withSequence(checkOf(firstRequest, size, kDirectId), 1);
    return;
  }
  const std::vector<size_t> offsets = offsetsOf(call);
  // As in a context of ranks that are all here: with what there is.
  internal::Profile profile = internal::Profile::fromEnvironment();
  profile.hostOfRank.assign(ranks_.size(), 0);
  const Selection selection(profile, size, direct ? "shm" : "tcp");
  self.plan = std::make_unique<Plan>(requestOf(call, offsets), rank, size,
                                     selection, SIZE_MAX);
  self.word = internal::withSequence(self.plan->check(),
                                     static_cast<uint16_t>(1 + call.before));
  self.done.assign(self.plan->program().actions.size(), false);
}

void MismatchOracle::readLines() {
  for (size_t self = 0; self < ranks_.size(); self++) {
    for (const int peer : ranks_[self].reads) {
      const auto other = static_cast<size_t>(peer);
      if (!ranks_[other].isDirect) {
        waits_ = true;
      } else if (!agree(self, other)) {
        contradicts_ = true;
      }
    }
  }
}

bool MismatchOracle::step() {
  bool moved = false;
  for (size_t self = 0; self < ranks_.size(); self++) {
    Rank& rank = ranks_[self];
    for (size_t i = 0; i < rank.done.size(); i++) {
      const Action& action = rank.plan->program().actions[i];
      if (!rank.done[i] && isReady(rank, action) && perform(self, action)) {
        rank.done[i] = true;
        moved = true;
      }
    }
  }
  return moved;
}

bool MismatchOracle::isReady(const Rank& rank, const Action& action) const {
  const uint32_t* waits = rank.plan->program().waits.data() + action.firstWait;
  return std::all_of(waits, waits + action.waitCount,
                     [&](uint32_t i) { return rank.done[i]; });
}

bool MismatchOracle::perform(size_t self, const Action& action) {
  const auto peer = static_cast<size_t>(action.peer);
  if (action.kind == ActionKind::kSend) {
    contradicts_ = contradicts_ || !agreeOn(self, peer, true);
    ranks_[self].sentTo[peer]++;
  } else if (action.kind == ActionKind::kRecv) {
    if (!agreeOn(self, peer, false) || ranks_[peer].sentTo[self] == 0) {
      return false;
    }
    ranks_[peer].sentTo[self]--;
  }
  return true;
}

// Who waits for long tells the sender what for. One that has begun an operation
// of that number, this one or an earlier one without elements, knows better.
void MismatchOracle::tellAwaited() {
  for (size_t self = 0; self < ranks_.size(); self++) {
    const Rank& rank = ranks_[self];
    for (size_t i = 0; i < rank.done.size(); i++) {
      const Action& action = rank.plan->program().actions[i];
      const auto peer = static_cast<size_t>(action.peer);
      if (!rank.done[i] && action.kind == ActionKind::kRecv &&
          isReady(rank, action) && !agreeOn(self, peer, false) &&
          internal::sequenceOf(rank.word) <=
              internal::sequenceOf(ranks_[peer].word)) {
        contradicts_ = true;
      }
    }
  }
}

bool MismatchOracle::agreeOn(size_t self, size_t peer, bool sends) const {
  const auto wordOf = [this](size_t rank, size_t other, bool isSender) {
    const Rank& r = ranks_[rank];
    return r.plan == nullptr
               ? r.word
               : internal::withPart(r.word,
                                    {static_cast<int>(rank),
                                     static_cast<int>(other), isSender},
                                    r.plan->details().get());
  };
  return internal::checksAgree(wordOf(self, peer, sends),
                               wordOf(peer, self, !sends));
}

bool MismatchOracle::agree(size_t one, size_t other) const {
  return internal::checksAgree(ranks_[one].word, ranks_[other].word);
}

}  // namespace test
GLOO_NAMESPACE_END
