// Connecting: what the connector tells a context, and what it answers.
#include <algorithm>

#include "gloo/common/env.h"
#include "gloo/common/string.h"
#include "transport/base/context.h"
#include "transport/base/lifeline.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

using internal::Cause;
using std::chrono::milliseconds;
using Clock = Deadline::Clock;

namespace {

constexpr const char* kCrossing = "crossing calls";

}  // namespace

// What goes wrong is the end of this context, not of whoever drives the device.
Hello Context::onHello(const Hello& theirs) try {
  Hello answer;
  answer.purpose = theirs.purpose;
  answer.verdict = Verdict::kAccepted;
  answer.srcRank = rank();
  answer.dstRank = theirs.srcRank;
  answer.size = size();
  answer.srcNonce = nonce_;
  answer.dstNonce = theirs.srcNonce;
  answer.worldNonce = worldNonce_;
  answer.linkKind = device_->factory().kind();
  const bool other = hasAnother(theirs);
  if (theirs.purpose == Purpose::kRefusal) {
    if (!other) {
      failNew(Cause::Kind::kRendezvous, theirs.srcRank, theirs.text);
    }
    return answer;
  }
  if (other && theirs.purpose != Purpose::kLifeline) {
    answer.verdict = Verdict::kUnknown;
    answer.text = "that mesh has its ranks: the address is of an earlier one";
    return answer;
  }
  // A lazy mesh that is being connected probes where another one would call.
  // (Who watches over a complete one only asks whether this process lives.)
  if (theirs.purpose == Purpose::kProbe && theirs.worldNonce == 0 &&
      !refusal_.empty()) {
    answer.verdict = Verdict::kRefused;
    answer.text = refusal_;
    return answer;
  }
  if (theirs.purpose == Purpose::kProbe) {
    noteProbe(theirs);
    answer.begun = agreement().begun(theirs.tag).value_or(Hello::kNotKnown);
  }
  if (theirs.purpose != Purpose::kPair) {
    return answer;
  }
  answer.text = objection(theirs);
  if (!answer.text.empty()) {
    answer.verdict = Verdict::kRefused;
    return answer;
  }
  makeLink(theirs, answer);
  return answer;
} catch (const std::exception& e) {
  failAfter(e, "a call of", theirs.srcRank);
  // A later call for a pair hears why; others only ask for this process.
  Hello answer;
  answer.purpose = theirs.purpose;
  answer.verdict =
      theirs.purpose == Purpose::kPair ? Verdict::kUnknown : Verdict::kAccepted;
  answer.srcRank = rank();
  answer.dstRank = theirs.srcRank;
  answer.srcNonce = nonce_;
  answer.dstNonce = theirs.srcNonce;
  return answer;
}

// Whether the caller has taken this mesh for its own: this one has another
// process, or context, of that rank, or is complete without it. So what the
// caller finds wrong with its mesh is none of this one's business.
bool Context::hasAnother(const Hello& caller) const {
  const bool isOfRange = caller.srcRank >= 0 && caller.srcRank < size() &&
                         caller.srcRank != rank();
  if (!isOfRange || (complete_ && caller.size != size())) {
    return complete_;
  }
  const Peer& p = peers_[static_cast<size_t>(caller.srcRank)];
  const bool settled = complete_ || p.state == PeerState::kConnected;
  return settled && nonceOf(caller.srcRank) != caller.srcNonce;
}

// This end of it, or why there is none: a caller that has no end of its own
// says so.
void Context::makeLink(const Hello& theirs, Hello& answer) {
  if (!theirs.text.empty()) {
    answer.verdict = Verdict::kRefused;
    answer.text =
        MakeString("rank ", theirs.srcRank, " cannot make a link to rank ",
                   rank(), ": ", theirs.text)
            .substr(0, Hello::kMaxText);
    failNew(Cause::Kind::kIo, theirs.srcRank, answer.text);
    return;
  }
  Peer& p = peers_[static_cast<size_t>(theirs.srcRank)];
  try {
    p.answering = device_->factory().answer(size() - 1, theirs);
    if (const std::string why = p.answering->trouble(); !why.empty()) {
      throw IoException(why);
    }
    answer.blob = p.answering->blob();
  } catch (const Exception& e) {
    p.answering.reset();
    const bool passes = dynamic_cast<const NotNowException*>(&e) != nullptr;
    answer.verdict = passes ? Verdict::kUnknown : Verdict::kRefused;
    answer.text = MakeString("rank ", rank(), " cannot make a link to rank ",
                             theirs.srcRank, ": ", e.what());
    if (!passes) {
      // Nor with the others: each attempt may hold the device up for a second.
      failNew(Cause::Kind::kIo, theirs.srcRank, answer.text);
    }
    return;
  } catch (...) {
    p.answering.reset();  // else want() would never call this peer again
    throw;
  }
  p.nonce = theirs.srcNonce;
}

// A lazy mesh is complete when all addresses are known to be of this run. A
// peer that finds ours so shows that its own is, and may leave right after.
void Context::noteProbe(const Hello& theirs) {
  if (!lazy_ || complete_ || theirs.size != size() || theirs.srcRank < 0 ||
      theirs.srcRank >= size() || theirs.srcRank == rank()) {
    return;
  }
  Peer& p = peers_[static_cast<size_t>(theirs.srcRank)];
  if (p.nonce == 0) {
    p.nonce = theirs.srcNonce;
    p.state = PeerState::kConnected;
    changes_++;
  }
}

// Why this caller cannot have its pair; empty: it can.
std::string Context::objection(const Hello& theirs) const {
  if (!refusal_.empty()) {
    return refusal_;
  }
  if (cause_ != nullptr) {
    return cause_->text;
  }
  if (theirs.size != size()) {
    return MakeString("rank ", theirs.srcRank, " was started with size ",
                      theirs.size, ", rank ", rank(), " with size ", size());
  }
  if (theirs.srcRank < 0 || theirs.srcRank >= size() ||
      theirs.srcRank == rank() || theirs.dstRank != rank()) {
    return MakeString("rank ", rank(), " of ", size(), " was called as rank ",
                      theirs.dstRank, " by a process that is rank ",
                      theirs.srcRank);
  }
  if (theirs.linkKind != device_->factory().kind()) {
    return MakeString("rank ", theirs.srcRank, " uses ", theirs.linkKind,
                      ", rank ", rank(), " uses ", device_->factory().kind());
  }
  return objectionOfRank(theirs);
}

// Whether a rank that takes leave has something for the peer that waits for a
// link.
bool Context::leavesWith(int peer) const {
  const Pair* pair = pairAt(peer);
  return !byeSaid_ && pair != nullptr && !pair->linked() && pair->sending();
}

// Of a caller that may have a pair, and has one already, or had.
std::string Context::objectionOfRank(const Hello& theirs) const {
  const Peer& p = peers_[static_cast<size_t>(theirs.srcRank)];
  if (closed_ && !leavesWith(theirs.srcRank)) {
    return closedCause().text;  // it is taking leave
  }
  if (p.nonce != 0 && p.nonce != theirs.srcNonce) {
    return MakeString("rank ", theirs.srcRank,
                      " is claimed by two processes: start each rank once");
  }
  const Pair* pair = pairAt(theirs.srcRank);
  if (pair != nullptr && pair->closedHere()) {
    return closedCause().text;  // to this peer it is as if we had left
  }
  if (pair != nullptr && pair->linked()) {
    return MakeString("rank ", theirs.srcRank, " is connected already");
  }
  const bool weCall = p.calling && lazy_ && complete_;
  if (weCall && theirs.srcRank < rank()) {
    return kCrossing;  // the call of the higher rank stands
  }
  return "";
}

// One that nobody waits for any more is forgotten.
void Context::endProbe(uint64_t tag, const Probe& answer) {
  if (const auto it = probes_.find(tag); it != probes_.end()) {
    it->second = answer;
  }
}

void Context::onConnected(const Hello& theirs, UniqueFd socket,
                          uint64_t tag) try {
  if (tag >= kFirstProbe) {
    endProbe(tag, {.done = true, .alive = true, .begun = theirs.begun});
    changes_++;
    return;
  }
  // A question has no verdict; the tag of an answer says whom we asked.
  const bool called = theirs.verdict == Verdict::kAccepted;
  const int peer = called ? rankOf(tag) : theirs.srcRank;
  if (called && (theirs.srcRank != peer || theirs.dstRank != rank())) {
    onConnectFailed(tag, Failure::kBroken,
                    MakeString("it is of rank ", theirs.srcRank, ", for rank ",
                               theirs.dstRank));
    return;
  }
  Peer& p = peers_[static_cast<size_t>(peer)];
  changes_++;
  if (tag >= kProbeOfRank) {
    p.probing = false;
    p.state = PeerState::kConnected;
    p.nonce = theirs.srcNonce;
    return;
  }
  auto pending = std::move(called ? p.pending : p.answering);
  Pair& pair = makePair(peer);
  if (pending != nullptr && !pair.linked()) {
    p.calling = false;
    completeLink(*pending, std::move(socket), theirs, pair);
  }
} catch (const std::exception& e) {
  failAfter(e, "a connection with", theirs.srcRank);
}

void Context::completeLink(PendingLink& pending, UniqueFd socket,
                           const Hello& theirs, Pair& pair) {
  const int peer = pair.peer();
  Peer& p = peers_[static_cast<size_t>(peer)];
  try {
    auto link = pending.complete(std::move(socket), theirs, pair);
    if (cause_ != nullptr) {
      // It comes too late for what the others were told.
      pair.attachFailed(std::move(link), *cause_);
      return;
    }
    pair.attach(std::move(link));
    if (byeSaid_ || pair.closedHere()) {
      pair.sayBye();  // as to those that were linked in time
    }
    p.state = PeerState::kConnected;
    p.nonce = theirs.srcNonce;
  } catch (const Exception& e) {
    failNew(Cause::Kind::kIo, peer,
            MakeString("cannot make a link to rank ", peer, ": ", e.what()));
  }
}

void Context::onConnectFailed(uint64_t tag, Failure failure,
                              const std::string& text) try {
  changes_++;
  if (tag >= kFirstProbe) {
    endProbe(tag, {.done = true,
                   .alive = failure == Failure::kPassed ||
                            failure == Failure::kRefused});
    return;
  }
  const bool probed = tag >= kProbeOfRank;
  const int peer = rankOf(tag);
  Peer& p = peers_[static_cast<size_t>(peer)];
  std::string trouble;  // ours, of which the peer has seen the consequence
  if (probed) {
    p.probing = false;
    if (p.state == PeerState::kConnected) {
      return;  // it has probed us meanwhile, and may have left since
    }
  } else {
    p.calling = false;
    trouble = p.pending != nullptr ? p.pending->trouble() : "";
    p.pending.reset();
  }
  if (pairAt(peer)->linked()) {
    return;
  }
  const bool refused = failure == Failure::kRefused;
  if (refused && text == kCrossing) {
    return;  // the peer's own call is on its way
  }
  const bool closed = refused && text == closedText(peer);
  if (refused && !closed && !trouble.empty()) {
    failNew(Cause::Kind::kIo, rank(),
            MakeString("rank ", rank(), " cannot make a link to rank ", peer,
                       ": ", trouble));
  } else if (complete_) {
    missed(peer, failure, text);
  } else {
    missedYet(peer, failure, text);
  }
} catch (const std::exception& e) {
  failAfter(e, "a call to", tag >= kFirstProbe ? rank() : rankOf(tag));
}

// The mesh is not complete yet: it may be somebody else's address.
void Context::missedYet(int peer, Failure failure, const std::string& text) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  if (failure == Failure::kRefused && text == closedText(peer)) {
    failDeparted(peer);
  } else if (failure == Failure::kRefused) {
    failNew(Cause::Kind::kRendezvous, peer, text);
  } else if (Environment::fromEnvironment().disableConnectionRetries) {
    failNew(Cause::Kind::kRendezvous, peer,
            MakeString("cannot reach rank ", peer, " at ", text,
                       " (GLOO_DISABLE_CONNECTION_RETRIES is set)"));
  } else {
    p.state = PeerState::kRefused;
    p.trouble = text;
    p.retryAt = Clock::now() + p.backoff;
    p.backoff = std::min(p.backoff * 2, Peer::kMaxBackoff);
  }
}

}  // namespace transport::base
GLOO_NAMESPACE_END
