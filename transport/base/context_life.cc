// Which peers are alive, as far as this process can tell.
#include <algorithm>
#include <cerrno>
#include <map>
#include <thread>

#include "gloo/common/logging.h"
#include "transport/base/context.h"
#include "transport/base/process.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

using std::chrono::milliseconds;
using Clock = Deadline::Clock;

namespace {

// How long, and how many, peers are asked for a sign of life.
constexpr milliseconds kSignOfLife{300};
constexpr int kMostAsked = 256;
// What others are given time for is waited for in slices, so that a process
// that was stopped itself in the meantime does not take that for their silence.
constexpr int kSlices = 20;

}  // namespace

// Processes that live greet back, whatever they do: their background thread
// does, and it says how many collectives they have begun. Refusals count as
// answers. Of those that are behind this rank others may wait in an earlier
// collective for the ones that are furthest behind, so these are to blame.
Context::Missing Context::missingRanks(ProgressDomain::Lock& lock,
                                       std::optional<uint64_t> slot) {
  const uint64_t tag = slot ? internal::tagOf(*slot) : 0;
  uint64_t least = slot ? agreement().begun(tag).value_or(0) : 0;
  std::map<int, uint64_t> calls;
  for (int peer = 0; peer < size(); peer++) {
    const Peer& p = peers_[static_cast<size_t>(peer)];
    if (p.known && static_cast<int>(calls.size()) < kMostAsked) {
      const uint64_t call = kFirstProbe + nextProbe_++;
      probes_[call] = {};
      calls[peer] = call;
      Hello hello = greeting(Purpose::kProbe, p);
      hello.tag = tag;
      device_->connector().connect(nonce_, p.endpoint, hello, call,
                                   2 * kSignOfLife);
    }
  }
  const auto answered = [&](const auto& call) {
    return probes_[call.second].done;
  };
  const auto over = [&] {
    return cause_ != nullptr ||
           std::all_of(calls.begin(), calls.end(), answered);
  };
  for (int i = 0; i < kSlices; i++) {
    const auto end = Clock::now() + kSignOfLife / kSlices;
    if (domain().wait(lock, over, Deadline(end))) {
      break;
    }
  }
  Missing missing;
  for (const auto& [peer, call] : calls) {
    const Probe probe = probes_.extract(call).mapped();
    if (!probe.done) {
      missing.silent.push_back(peer);
    } else if (probe.begun < least) {
      least = probe.begun;
      missing.late = {peer};
    } else if (probe.begun == least && !missing.late.empty()) {
      missing.late.push_back(peer);
    }
  }
  return missing;
}

int Context::visiblePid(const AddressRecord& peer) const {
  const bool visible = peer.hostId == device_->hostId() &&
                       peer.pidNamespace != 0 &&
                       peer.pidNamespace == pidNamespace();
  return visible ? static_cast<int>(peer.pid) : 0;
}

bool Context::waitWhileMoving(ProgressDomain::Lock& lock,
                              const ProgressDomain::Ready& over,
                              milliseconds limit, const Pairs& pairs,
                              Sign sign) {
  // (A deadline after no time would be none at all.)
  const auto slice = std::max(limit / kSlices, milliseconds(1));
  const int most = limit.count() > 0 ? kSlices : 0;
  for (int silent = 0; silent < most;) {
    const uint64_t before = movedBy(pairs, sign);
    const auto end = Clock::now() + slice;
    try {
      if (domain().wait(lock, over, Deadline(end))) {
        return true;
      }
    } catch (const std::exception& e) {
      // Of a poller. Who waits here may be a destructor, and goes on.
      GLOO_WARN("rank ", rank(),
                ": an end is waited for in spite of: ", e.what());
      lock.unlock();
      std::this_thread::sleep_until(end);  // it has the time all the same
      lock.lock();
    }
    silent = movedBy(pairs, sign) == before ? silent + 1 : 0;
  }
  return over();
}

uint64_t Context::movedBy(const Pairs& pairs, Sign sign) const {
  uint64_t moved = 0;
  for (int peer = 0; peer < size(); peer++) {
    const Pair* pair = pairAt(peer);
    if (pair != nullptr && pairs(*pair)) {
      moved += sign == Sign::kTaken ? pair->taken() : pair->moved();
    }
  }
  return moved;
}

bool Context::isGone(const internal::PeerAddress& peer) const {
  const int pid = visiblePid(decodeAddress(peer.bytes));
  if (pid <= 0) {
    return false;
  }
  const UniqueFd process = openProcess(pid);
  return process ? hasEnded(process) : errno == ESRCH;
}

}  // namespace transport::base
GLOO_NAMESPACE_END
