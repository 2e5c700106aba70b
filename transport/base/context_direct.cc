// Memory for all ranks of a context: rank 0 makes it and gives it to the
// others, all have it or none does. Four messages for each rank, once.
#include <algorithm>
#include <cstring>

#include "gloo/common/logging.h"
#include "gloo/types.h"
#include "transport/base/context.h"
#include "transport/base/crowding.h"
#include "transport/base/lifeline.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

// Of no collective.
constexpr uint8_t kSharePrefix = 0xfe;
constexpr uint8_t kYes = 1;
using Name = MemorySharer::Name;

// To rank 0: where this rank takes memory, if it can.
struct Ability {
  uint8_t able = 0;
  uint8_t reads = 0;  // the memory of all others, through the kernel
  uint8_t barriers = 0;
  Name name{};
  RankCores cores;
};
// From rank 0: whether there is some, under which token, of which each rank has
// its own. (If not, some ranks may have been given it nevertheless.)
struct Offer {
  uint8_t made = 0;
  Name token{};
  uint64_t slotBytes = 0;
};
// To rank 0, that this rank has it; and from there, that all have.
struct Answer {
  uint8_t shared = 0;
};
// They travel between processes of one host and of one version.

// Messages of one round of the agreement. Ends them all before it goes.
class Round {
 public:
  Round(Context& context, int messages)
      : context_(context),
        slot_(Slot::build(kSharePrefix, 0)),
        operations_(static_cast<size_t>(messages)) {}

  ~Round() {
    for (internal::Operation& op : operations_) {
      context_.cancel(op);
    }
  }

  template <typename T>
  void send(int peer, const T& message) {
    context_.postSend(operations_[used_++], peer, slot_, &message,
                      sizeof(message), 0, false);
  }
  template <typename T>
  void receive(int peer, T& message) {
    context_.postRecv(operations_[used_++], peer, slot_, &message,
                      sizeof(message), 0);
  }

  void finish(Deadline deadline) {
    const auto pending = [](const auto& op) { return op.pending(); };
    const bool done = context_.waitUntil(
        [&] {
          return std::none_of(operations_.begin(), operations_.end(), pending);
        },
        deadline);
    if (!done) {
      const int peer =
          std::find_if(operations_.begin(), operations_.end(), pending)->peer;
      auto cause = std::make_shared<internal::Cause>();
      cause->kind = internal::Cause::Kind::kTimeout;
      cause->foundBy = context_.rank();
      cause->culprit = peer;
      cause->text = MakeString("Timed out agreeing with rank ", peer,
                               " on shared memory");
      context_.fail(cause);
    }
    // What has gone wrong after that is the next operation's affair.
    if (!std::all_of(operations_.begin(), operations_.end(),
                     [](const auto& op) { return op.done(); })) {
      context_.checkUsable("agreeing on shared memory");
    }
  }

 private:
  Context& context_;
  const uint64_t slot_;
  std::vector<internal::Operation> operations_;
  size_t used_ = 0;
};

}  // namespace

// Memory that all ranks have, or null, and how it is cut.
struct Context::Scratch {
  std::shared_ptr<SharedMemory> memory;
  size_t slotBytes = 0;
};

// As all ranks see it.
bool Context::onOneHost() const {
  const std::vector<int>& hosts = profile_->hostOfRank;
  return std::all_of(hosts.begin(), hosts.end(),
                     [&](int host) { return host == hosts.front(); });
}

bool Context::peerHasEnded(int peer) const {
  auto lock = this->lock();
  return pairAt(peer) != nullptr && pairAt(peer)->peerHasEnded();
}

// Whether this rank shares memory with each other rank.
bool Context::allShared() {
  auto lock = this->lock();
  for (int peer = 0; peer < size(); peer++) {
    if (peer != rank() && linkNameLocked(peer) != "shm") {
      return false;
    }
  }
  return device_->factory().sharer() != nullptr;
}

// What reads their memory, by rank; empty if that of one of them may not be.
DirectLanes::Peers Context::readablePeers() {
  auto lock = this->lock();
  DirectLanes::Peers peers(static_cast<size_t>(size()));
  for (int peer = 0; peer < size(); peer++) {
    if (peer == rank()) {
      continue;
    }
    const Pair* const pair = pairAt(peer);
    auto memory = pair != nullptr ? pair->peerMemory() : nullptr;
    if (memory == nullptr) {
      return {};
    }
    peers[static_cast<size_t>(peer)] = std::move(memory);
  }
  return peers;
}

// Once its lifelines are open, the others notice when this process dies, and
// nobody takes for a death that it has left.
void Context::awaitLifelines(Deadline deadline) {
  auto lock = this->lock();
  const auto over = [&] {
    return !joined_ || cause_ != nullptr ||
           Lifelines::instance().met(worldNonce_, nonce_);
  };
  while (!over() && !deadline.expired()) {
    const auto soon = Deadline::Clock::now() + std::chrono::milliseconds(1);
    domain().wait(lock, over, Deadline(std::min(deadline.at(), soon)),
                  ProgressDomain::Manner::kSleep);
  }
  if (!over()) {
    failTimeout(lock, over, [this] {
      const auto unmet = Lifelines::instance().unmet(worldNonce_, nonce_);
      const bool isOurs = unmet.isShort || unmet.ranks.empty();
      return causeOf(
          internal::Cause::Kind::kTimeout,
          isOurs ? rank() : unmet.ranks.front(),
          MakeString("Timed out: rank ", rank(),
                     " is connected, but not all other ranks are ready to "
                     "watch over it: it has no lifeline to ",
                     internal::listRanks(unmet.ranks),
                     unmet.trouble.empty() ? "" : "; it cannot call ",
                     unmet.trouble));
    });
  }
  throwIfFailed("connecting");
}

void Context::share(Deadline deadline) {
  awaitLifelines(deadline);
  if (size() < 2 || size() > DirectLanes::kMaxRanks || lazy_ ||
      !device_->factory().mayShare() || !onOneHost()) {
    return;
  }
  Scratch scratch =
      rank() == 0 ? shareFromFirst(deadline) : shareFromOther(deadline);
  if (scratch.memory != nullptr) {
    // Not under the lock: what it has made takes that when it goes, as it does
    // when there is no memory for the rest.
    auto lanes = std::make_unique<DirectLanes>(
        *this, std::move(scratch.memory), scratch.slotBytes, readablePeers());
    auto lock = this->lock();
    direct_ = std::move(lanes);
    // What was heard while they were not there yet.
    for (int peer = 0; peer < size(); peer++) {
      const Pair* const pair = pairAt(peer);
      if (pair != nullptr && pair->departed()) {
        direct_->depart(peer);
      }
    }
    if (cause_ != nullptr) {
      direct_->fail();
    }
  }
}

Context::Scratch Context::shareFromFirst(Deadline deadline) {
  const auto others = static_cast<size_t>(size() - 1);
  bool barriers = DirectLanes::mayMakeBarriers();
  std::vector<Ability> abilities(others);
  {
    Round round(*this, size() - 1);
    for (int peer = 1; peer < size(); peer++) {
      round.receive(peer, abilities[static_cast<size_t>(peer - 1)]);
    }
    round.finish(deadline);
  }
  bool able = allShared();
  bool reads = !readablePeers().empty();
  std::vector<RankCores> cores{RankCores::own(domain().spread().ranks())};
  for (const Ability& ability : abilities) {
    able = able && ability.able == kYes;
    reads = reads && ability.reads == kYes;
    barriers = barriers && ability.barriers == kYes;
    cores.push_back(ability.cores);
  }
  std::shared_ptr<SharedMemory> memory;
  Offer offer;
  if (able) {
    try {
      MemorySharer& sharer = *device_->factory().sharer();
      const bool crowded = isCrowded(cores);
      std::vector<size_t> slots{DirectLanes::slotBytesFor(size(), crowded)};
      if (crowded) {  // with less memory than that takes
        slots.push_back(DirectLanes::slotBytesFor(size(), false));
      }
      std::vector<MemorySharer::Plan> plans;
      for (const size_t slotBytes : slots) {
        plans.push_back({DirectLanes::memoryBytes(size(), slotBytes),
                         DirectLanes::partsOf(slotBytes, cores)});
      }
      offer.token = sharer.makeToken();
      std::vector<MemorySharer::Taker> takers;
      for (int peer = 1; peer < size(); peer++) {
        takers.push_back({abilities[static_cast<size_t>(peer - 1)].name,
                          MemorySharer::tokenOf(offer.token, peer)});
      }
      size_t chosen = 0;
      memory = sharer.give(plans, takers, &chosen);
      offer.slotBytes = slots[chosen];
      DirectLanes::Preface& preface = DirectLanes::preface(*memory);
      preface.names[0] = sharer.name();
      std::transform(takers.begin(), takers.end(), preface.names.begin() + 1,
                     [](const auto& taker) { return taker.name; });
      preface.token = offer.token;
      preface.crowded = crowded ? 1 : 0;
      preface.reads = reads ? 1 : 0;
      preface.barriers = barriers && !crowded ? 1 : 0;
      offer.made = kYes;
    } catch (const IoException& e) {
      GLOO_INFO("rank 0: no memory for all ranks: ", e.what());
    }
  }
  std::vector<Answer> answers(others);
  Answer verdict;
  {
    Round round(*this, 2 * (size() - 1));
    for (int peer = 1; peer < size(); peer++) {
      round.send(peer, offer);
      round.receive(peer, answers[static_cast<size_t>(peer - 1)]);
    }
    round.finish(deadline);
  }
  const bool all =
      offer.made == kYes &&
      std::all_of(answers.begin(), answers.end(),
                  [](const Answer& answer) { return answer.shared == kYes; });
  verdict.shared = all ? kYes : 0;
  Round round(*this, size() - 1);
  for (int peer = 1; peer < size(); peer++) {
    round.send(peer, verdict);
  }
  round.finish(deadline);
  return {all ? memory : nullptr, offer.slotBytes};
}

Context::Scratch Context::shareFromOther(Deadline deadline) {
  Ability ability;
  ability.cores = RankCores::own(domain().spread().ranks());
  Offer offer;
  if (allShared()) {
    ability.able = kYes;
    ability.reads = readablePeers().empty() ? 0 : kYes;
    ability.barriers = DirectLanes::mayMakeBarriers() ? kYes : 0;
    ability.name = device_->factory().sharer()->name();
  }
  {
    Round round(*this, 2);
    round.send(0, ability);
    round.receive(0, offer);
    round.finish(deadline);
  }
  const Name token = MemorySharer::tokenOf(offer.token, rank());
  std::shared_ptr<SharedMemory> memory;
  if (offer.made != kYes && ability.able == kYes) {
    device_->factory().sharer()->refuse(token);
  }
  if (offer.made == kYes && ability.able == kYes) {
    try {
      // What was handed over is taken in any case, and refused for its size.
      const bool fits = DirectLanes::maySlotsHave(size(), offer.slotBytes);
      memory = device_->factory().sharer()->take(
          fits ? DirectLanes::memoryBytes(size(), offer.slotBytes) : 0, token);
    } catch (const IoException& e) {
      GLOO_INFO("rank ", rank(), ": no memory for all ranks: ", e.what());
    }
  }
  Answer answer;
  answer.shared = memory != nullptr ? kYes : 0;
  Answer verdict;
  Round round(*this, 2);
  round.send(0, answer);
  round.receive(0, verdict);
  round.finish(deadline);
  return {verdict.shared == kYes ? memory : nullptr, offer.slotBytes};
}

}  // namespace transport::base
GLOO_NAMESPACE_END
