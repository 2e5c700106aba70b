// Connecting: the rendezvous' side of a context; the connector's is in
// context_party.cc, that of lazy pairs in context_lazy.cc. Who does not answer
// is found in context_life.cc.
#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "gloo/common/env.h"
#include "gloo/common/logging.h"
#include "gloo/common/utils.h"
#include "transport/base/context.h"
#include "transport/base/lifeline.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

using internal::Cause;
using internal::PeerAddress;
using std::chrono::milliseconds;
using Clock = Deadline::Clock;

namespace {

constexpr milliseconds kCallLimit{5000};
// How long a rank that gives up, mostly at its deadline, waits until those that
// live have heard why. One that is stopped never does.
constexpr milliseconds kRefusalLimit{300};

SocketAddress endpointOf(const AddressRecord& record) {
  if (record.family == 4) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(record.port);
    std::memcpy(&in.sin_addr, record.ip.data(), 4);
    return {reinterpret_cast<sockaddr*>(&in), sizeof(in)};
  }
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  in6.sin6_port = htons(record.port);
  in6.sin6_scope_id = record.scope;
  std::memcpy(&in6.sin6_addr, record.ip.data(), 16);
  return {reinterpret_cast<sockaddr*>(&in6), sizeof(in6)};
}

// How a rank at `mine` reaches it. The zone of a link-local address is the
// number of an interface of the host that uses the address (RFC 4007, section
// 6).
SocketAddress reachedFrom(const SocketAddress& mine,
                          const AddressRecord& record) {
  AddressRecord reached = record;
  if (mine.family() == AF_INET6 && record.family == 6) {
    const auto* own = reinterpret_cast<const sockaddr_in6*>(mine.get());
    in6_addr theirs{};
    std::memcpy(&theirs, record.ip.data(), sizeof(theirs));
    if (IN6_IS_ADDR_LINKLOCAL(&theirs) && own->sin6_scope_id != 0) {
      reached.scope = own->sin6_scope_id;
    }
  }
  return endpointOf(reached);
}

void setEndpoint(AddressRecord& record, const SocketAddress& endpoint) {
  record.port = endpoint.port();
  if (endpoint.family() == AF_INET) {
    record.family = 4;
    const auto* in = reinterpret_cast<const sockaddr_in*>(endpoint.get());
    std::memcpy(record.ip.data(), &in->sin_addr, 4);
  } else {
    record.family = 6;
    const auto* in6 = reinterpret_cast<const sockaddr_in6*>(endpoint.get());
    std::memcpy(record.ip.data(), &in6->sin6_addr, 16);
    record.scope = in6->sin6_scope_id;
  }
}

PeerAddress toPeerAddress(const AddressRecord& record,
                          std::vector<char> bytes) {
  PeerAddress peer;
  peer.rank = record.rank;
  peer.size = record.size;
  peer.nonce = record.nonce;
  peer.hostId = record.hostId;
  peer.pidNamespace = record.pidNamespace;
  peer.pid = static_cast<int>(record.pid);
  peer.text = MakeString(record.linkKind, " ", endpointOf(record).str(),
                         " (host ", record.host, ", pid ", record.pid, ")");
  peer.bytes = std::move(bytes);
  return peer;
}

}  // namespace

PeerAddress Context::address() {
  origin_.check("context");
  AddressRecord record;
  record.rank = rank();
  record.size = size();
  record.nonce = nonce_;
  record.hostId = device_->hostId();
  record.pidNamespace = pidNamespace();
  record.pid = static_cast<uint32_t>(getpid());
  record.host = getHostname();
  record.linkKind = device_->factory().kind();
  record.extra = device_->factory().addressExtra();
  setEndpoint(record, device_->connector().endpoint());
  return toPeerAddress(record, encode(record));
}

PeerAddress Context::decode(const std::vector<char>& bytes) const {
  try {
    return toPeerAddress(decodeAddress(bytes), bytes);
  } catch (const WireError& e) {
    throw RendezvousException(MakeString("not an address: ", e.what()));
  }
}

void Context::addPeer(const PeerAddress& peer) {
  auto lock = this->lock();
  addPeerLocked(peer);
  callPeers();
}

void Context::addPeerLocked(const PeerAddress& peer) {
  if (peer.rank < 0 || peer.rank >= size() || peer.rank == rank()) {
    throw RendezvousException(MakeString("an address of rank ", peer.rank,
                                         " for rank ", rank(), " of ", size()));
  }
  Peer& known = peers_[static_cast<size_t>(peer.rank)];
  const bool connected = known.state == PeerState::kConnected;
  if (connected && known.nonce != peer.nonce) {
    return;  // an older address than that of the process that called us
  }
  if (known.calling && known.record.nonce != peer.nonce) {
    device_->connector().cancel(nonce_, static_cast<uint64_t>(peer.rank));
    known.calling = false;
    known.pending.reset();
  }
  if (known.probing && known.record.nonce != peer.nonce) {
    device_->connector().cancel(
        nonce_, kProbeOfRank + static_cast<uint64_t>(peer.rank));
    known.probing = false;
  }
  known.known = true;
  known.record = decodeAddress(peer.bytes);
  known.endpoint = reachedFrom(device_->connector().endpoint(), known.record);
  makePair(peer.rank);
  if (connected) {
    return;
  }
  known.state = PeerState::kConnecting;
  known.trouble.clear();
  known.retryAt = Clock::now();
  known.backoff = Peer::kFirstBackoff;
}

Context::PeerState Context::peerState(int peer) const {
  auto lock = this->lock();
  return peers_[static_cast<size_t>(peer)].state;
}

uint64_t Context::peerNonce(int peer) const {
  auto lock = this->lock();
  const bool connected =
      peers_[static_cast<size_t>(peer)].state == PeerState::kConnected;
  return connected ? nonceOf(peer) : 0;
}

uint64_t Context::nonceOf(int peer) const {
  const Peer& p = peers_[static_cast<size_t>(peer)];
  // A lazy pair is only known to be there under the address that was probed.
  return p.nonce != 0 ? p.nonce : p.record.nonce;
}

std::string Context::peerTrouble(int peer) const {
  auto lock = this->lock();
  return peers_[static_cast<size_t>(peer)].trouble;
}

bool Context::allConnected() const {
  auto lock = this->lock();
  return allConnectedLocked();
}

bool Context::allConnectedLocked() const {
  for (int peer = 0; peer < size(); peer++) {
    if (peer != rank() &&
        peers_[static_cast<size_t>(peer)].state != PeerState::kConnected) {
      return false;
    }
  }
  return true;
}

void Context::progress(milliseconds limit) {
  origin_.check("context");
  auto lock = this->lock();
  callPeers();
  const uint64_t before = changes_;
  domain().wait(
      lock, [&] { return changes_ != before || cause_ != nullptr; },
      Deadline(Clock::now() + limit), ProgressDomain::Manner::kSleep);
  throwIfFailed("connecting");
}

// The higher rank calls the lower one; at first use of a lazy pair whoever has
// something to say calls.
void Context::callPeers() {
  const auto now = Clock::now();
  for (int peer = 0; peer < size(); peer++) {
    Peer& p = peers_[static_cast<size_t>(peer)];
    if (!p.known || p.calling || p.probing ||
        p.state == PeerState::kConnected || now < p.retryAt ||
        cause_ != nullptr) {
      continue;
    }
    if (lazy_ && !complete_ && !p.byHand) {
      probe(peer);
    } else if (peer < rank()) {
      call(peer);
    }
  }
}

Hello Context::greeting(Purpose purpose, const Peer& to) const {
  Hello hello;
  hello.purpose = purpose;
  hello.srcRank = rank();
  hello.dstRank = to.record.rank;
  hello.size = size();
  hello.srcNonce = nonce_;
  hello.dstNonce = to.record.nonce;
  hello.worldNonce = worldNonce_;
  hello.linkKind = device_->factory().kind();
  return hello;
}

void Context::call(int peer) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  try {
    p.pending = device_->factory().prepare(size() - 1);
  } catch (const Exception& e) {
    failNew(Cause::Kind::kIo, rank(),
            MakeString("rank ", rank(), " cannot make a link to rank ", peer,
                       ": ", e.what()));
    return;
  }
  p.calling = true;
  Hello hello = greeting(Purpose::kPair, p);
  hello.blob = p.pending->blob();
  hello.text = p.pending->trouble().substr(0, Hello::kMaxText);
  device_->connector().connect(nonce_, p.endpoint, hello,
                               static_cast<uint64_t>(peer), kCallLimit);
}

// A lazy mesh only makes sure that the address is not left over.
void Context::probe(int peer) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  p.probing = true;
  device_->connector().connect(nonce_, p.endpoint, greeting(Purpose::kProbe, p),
                               kProbeOfRank + static_cast<uint64_t>(peer),
                               kCallLimit);
}

bool Context::isAlive(const PeerAddress& peer, milliseconds limit) {
  auto lock = this->lock();
  Peer target;
  target.record = decodeAddress(peer.bytes);
  const uint64_t tag = kFirstProbe + nextProbe_++;
  probes_[tag] = {};
  device_->connector().connect(
      nonce_, reachedFrom(device_->connector().endpoint(), target.record),
      greeting(Purpose::kProbe, target), tag, limit);
  domain().wait(
      lock, [&] { return probes_[tag].done; }, Deadline(Clock::now() + limit));
  const bool alive = probes_[tag].alive;
  probes_.erase(tag);
  return alive;
}

void Context::refuse(const std::string& why) {
  auto lock = this->lock();
  if (!refusal_.empty()) {
    return;
  }
  refusal_ = why.substr(0, Hello::kMaxText);
  std::vector<uint64_t> calls;
  for (Peer& p : peers_) {
    const bool linked = p.known && pairAt(p.record.rank)->linked();
    if (!p.known || linked) {
      continue;  // those that are linked learn it by the abort
    }
    Hello hello = greeting(Purpose::kRefusal, p);
    hello.text = refusal_;
    const uint64_t tag = kFirstProbe + nextProbe_++;
    probes_[tag] = {};
    calls.push_back(tag);
    device_->connector().connect(nonce_, p.endpoint, hello, tag, kRefusalLimit);
  }
  failNew(Cause::Kind::kRendezvous, rank(), refusal_);
  domain().wait(
      lock,
      [&] {
        return std::all_of(calls.begin(), calls.end(),
                           [&](uint64_t tag) { return probes_[tag].done; });
      },
      Deadline(Clock::now() + kRefusalLimit));
}

void Context::complete(uint64_t worldNonce,
                       std::shared_ptr<const internal::Profile> profile) {
  auto lock = this->lock();
  worldNonce_ = worldNonce;
  profile_ = std::move(profile);
  complete_ = true;
  // Who share cores: also those that GLOO_HOST_ID tells apart.
  int local = 1;
  int before = 0;
  const SocketAddress& own = device_->connector().endpoint();
  for (const Peer& p : peers_) {
    const bool isNear =
        p.record.hostId == device_->hostId() || p.endpoint.hasIpOf(own);
    if (p.known && isNear) {
      local++;
      before += &p - peers_.data() < rank() ? 1 : 0;
    }
  }
  domain().setLocalRanks(local, before);
  if (lazy_ || !capsOfLinks().reportsDeath) {
    joinLifelines();
  }
}

void Context::joinLifelines() {
  std::vector<Lifelines::Peer> peers;
  for (const Peer& p : peers_) {
    if (p.known) {
      peers.push_back(
          {p.record.rank, p.record.nonce, p.endpoint, visiblePid(p.record)});
    }
  }
  Lifelines::instance().join(worldNonce_, nonce_, rank(), size(),
                             std::move(peers),
                             [this](const Cause& cause) { heardOfEnd(cause); });
  joined_ = true;
}

// By hand: both sides call it with the other's address.
void Context::connectPair(int peer, const std::vector<char>& bytes) {
  origin_.check("pair");
  // Who sends the addresses of all ranks in messages of one length, as FlagCX
  // does, fills them up where host names are shorter.
  const auto unpadded = withoutPadding(bytes);
  PeerAddress address = decode({unpadded.begin(), unpadded.end()});
  address.rank = peer;
  auto lock = this->lock();
  throwIfFailed("connect");
  addPeerLocked(address);
  Peer& p = peers_[static_cast<size_t>(peer)];
  p.record.rank = peer;
  p.byHand = true;
  const Deadline deadline = Deadline::after(getTimeout());
  const auto over = [&] { return cause_ != nullptr || pairAt(peer)->linked(); };
  while (!over() && !deadline.expired()) {
    callPeers();
    domain().wait(
        lock, over,
        Deadline(std::min(deadline.at(), Clock::now() + milliseconds(20))));
  }
  throwIfFailed(MakeString("connect to rank ", peer));
  if (!pairAt(peer)->linked()) {
    failNew(Cause::Kind::kTimeout, peer,
            MakeString("Timed out after ", getTimeout().count(),
                       " ms connecting to rank ", peer, " at ",
                       p.endpoint.str(), " ", p.trouble));
    throwIfFailed(MakeString("connect to rank ", peer));
  }
}

void Context::createAndConnectAllPairs(std::shared_ptr<IStore> store) {
  GLOO_ENFORCE(store != nullptr, "rank ", rank(),
               " cannot connect: the store is null");
  internal::connectMesh(*this, *store, Deadline::after(getTimeout()));
}

}  // namespace transport::base

internal::Mesh::~Mesh() = default;

internal::Mesh& internal::Mesh::of(transport::Context& context) {
  auto* mesh = dynamic_cast<Mesh*>(&context);
  if (mesh == nullptr) {
    GLOO_THROW_INVALID_OPERATION_EXCEPTION(
        "this transport context cannot be connected through a store");
  }
  return *mesh;
}

GLOO_NAMESPACE_END
