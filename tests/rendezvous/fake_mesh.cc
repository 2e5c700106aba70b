#include "tests/rendezvous/fake_mesh.h"

#include <algorithm>

#include "gloo/common/error.h"
#include "rendezvous/bytes.h"

namespace gloo_test {

using gloo::MakeString;
using gloo::RendezvousException;
using gloo::internal::PeerAddress;
using gloo::rendezvous::ByteReader;
using gloo::rendezvous::ByteWriter;

namespace {

constexpr uint32_t kMagic = 0x656b6146;

PeerAddress makeAddress(int rank, int size, uint64_t nonce, uint64_t hostId,
                        int pid) {
  PeerAddress address;
  address.rank = rank;
  address.size = size;
  address.nonce = nonce;
  address.hostId = hostId;
  address.pid = pid;
  address.text = MakeString("fake (host ", hostId, ", pid ", pid, ")");
  ByteWriter out(address.bytes);
  out.u32(kMagic);
  out.u32(static_cast<uint32_t>(rank));
  out.u32(static_cast<uint32_t>(size));
  out.u64(nonce);
  out.u64(hostId);
  out.u32(static_cast<uint32_t>(pid));
  return address;
}

}  // namespace

int FakeNetwork::connections() {
  std::lock_guard lock(mutex_);
  return connections_;
}

bool FakeNetwork::waitForConnections(int count) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(20),
                           [&] { return connections_ >= count; });
}

FakeMesh::FakeMesh(FakeNetwork& network, int rank, int size, uint64_t hostId,
                   int pid)
    : network_(network), peers_(static_cast<size_t>(size)) {
  std::lock_guard lock(network_.mutex_);
  const uint64_t nonce = network_.nextNonce_++;
  address_ = makeAddress(rank, size, nonce, hostId,
                         pid != 0 ? pid : 5000 + static_cast<int>(nonce));
  network_.alive_[nonce] = this;
}

FakeMesh::~FakeMesh() {
  std::lock_guard lock(network_.mutex_);
  network_.alive_.erase(address_.nonce);
  network_.changed_.notify_all();
}

PeerAddress FakeMesh::decode(const std::vector<char>& bytes) const {
  ByteReader in(bytes);
  const uint32_t magic = in.u32();
  const int rank = static_cast<int>(in.u32());
  const int size = static_cast<int>(in.u32());
  const uint64_t nonce = in.u64();
  const uint64_t hostId = in.u64();
  const int pid = static_cast<int>(in.u32());
  if (!in.ok() || in.left() != 0 || magic != kMagic) {
    throw RendezvousException("the address is damaged");
  }
  return makeAddress(rank, size, nonce, hostId, pid);
}

void FakeMesh::addPeer(const PeerAddress& peer) {
  std::lock_guard lock(network_.mutex_);
  Peer& mine = peers_.at(static_cast<size_t>(peer.rank));
  if (mine.state != PeerState::kConnected) {
    mine.address = peer;
    mine.state = PeerState::kConnecting;
    network_.changed_.notify_all();
  }
}

FakeMesh::PeerState FakeMesh::peerState(int rank) const {
  std::lock_guard lock(network_.mutex_);
  return peers_[static_cast<size_t>(rank)].state;
}

uint64_t FakeMesh::peerNonce(int rank) const {
  std::lock_guard lock(network_.mutex_);
  return peers_[static_cast<size_t>(rank)].nonce;
}

std::string FakeMesh::peerTrouble(int rank) const {
  std::lock_guard lock(network_.mutex_);
  return peers_[static_cast<size_t>(rank)].trouble;
}

void FakeMesh::tryConnect(Peer& peer) {
  const auto refusal = network_.refusals_.find(peer.address.nonce);
  if (refusal != network_.refusals_.end() && cause_.empty()) {
    cause_ = refusal->second;
    return;
  }
  const auto found = network_.alive_.find(peer.address.nonce);
  if (found == network_.alive_.end()) {
    peer.state = PeerState::kRefused;
    peer.trouble = "connection refused";
    return;
  }
  FakeMesh& other = *found->second;
  const auto rank = static_cast<size_t>(address_.rank);
  if (other.peers_.size() != peers_.size() ||
      other.peers_[rank].state == PeerState::kConnected) {
    return;
  }
  other.peers_[rank].state = PeerState::kConnected;
  other.peers_[rank].nonce = address_.nonce;
  peer.nonce = peer.address.nonce;
  peer.state = PeerState::kConnected;
  peer.trouble.clear();
  network_.connections_++;
  network_.changed_.notify_all();
}

void FakeMesh::progress(std::chrono::milliseconds limit) {
  std::unique_lock lock(network_.mutex_);
  steps_++;
  for (Peer& peer : peers_) {
    if (peer.state == PeerState::kConnecting ||
        peer.state == PeerState::kRefused) {
      tryConnect(peer);
    }
  }
  if (cause_.empty()) {
    network_.changed_.wait_until(lock,
                                 std::chrono::steady_clock::now() + limit);
  }
  if (!cause_.empty()) {
    throw RendezvousException(cause_);
  }
}

bool FakeMesh::allConnected() const {
  std::lock_guard lock(network_.mutex_);
  for (size_t rank = 0; rank < peers_.size(); rank++) {
    if (static_cast<int>(rank) != address_.rank &&
        peers_[rank].state != PeerState::kConnected) {
      return false;
    }
  }
  return true;
}

bool FakeMesh::isAlive(const PeerAddress& peer,
                       std::chrono::milliseconds /*limit*/) {
  std::lock_guard lock(network_.mutex_);
  return network_.alive_.count(peer.nonce) != 0;
}

void FakeMesh::refuse(const std::string& why) {
  std::lock_guard lock(network_.mutex_);
  network_.refusals_[address_.nonce] = why;
  for (auto& [nonce, other] : network_.alive_) {
    const bool known = std::any_of(
        peers_.begin(), peers_.end(), [n = nonce](const Peer& peer) {
          return peer.nonce == n || peer.address.nonce == n;
        });
    if (known && other != this && other->cause_.empty()) {
      other->cause_ = why;
    }
  }
  network_.changed_.notify_all();
}

void FakeMesh::complete(
    uint64_t worldNonce,
    std::shared_ptr<const gloo::internal::Profile> profile) {
  std::lock_guard lock(network_.mutex_);
  worldNonce_ = worldNonce;
  profile_ = std::move(profile);
}

}  // namespace gloo_test
