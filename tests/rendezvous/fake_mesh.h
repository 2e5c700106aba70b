// Ranks that connect to each other inside one process, without sockets.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gloo/internal/mesh.h"
#include "gloo/internal/profile.h"

namespace gloo_test {

class FakeMesh;

// Where the meshes of a test find each other. Thread-safe.
class FakeNetwork {
 public:
  // Pairs of ranks that are connected now, counted once.
  int connections();
  // Blocks until there are that many; false after 20 s.
  bool waitForConnections(int count);

 private:
  friend class FakeMesh;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, FakeMesh*> alive_;       // by nonce
  std::map<uint64_t, std::string> refusals_;  // by nonce; stay
  int connections_ = 0;
  uint64_t nextNonce_ = 1000;
};

// Alive until destruction. Connects as soon as one side knows the other's
// address and both have the same size.
class FakeMesh : public gloo::internal::Mesh {
 public:
  FakeMesh(FakeNetwork& network, int rank, int size, uint64_t hostId = 1,
           int pid = 0);
  ~FakeMesh() override;

  gloo::internal::PeerAddress address() override { return address_; }
  gloo::internal::PeerAddress decode(
      const std::vector<char>& bytes) const override;
  void addPeer(const gloo::internal::PeerAddress& peer) override;
  PeerState peerState(int rank) const override;
  uint64_t peerNonce(int rank) const override;
  std::string peerTrouble(int rank) const override;
  void progress(std::chrono::milliseconds limit) override;
  bool allConnected() const override;
  bool isAlive(const gloo::internal::PeerAddress& peer,
               std::chrono::milliseconds limit) override;
  void refuse(const std::string& why) override;
  void complete(
      uint64_t worldNonce,
      std::shared_ptr<const gloo::internal::Profile> profile) override;

  uint64_t worldNonce() const { return worldNonce_; }
  const gloo::internal::Profile* profile() const { return profile_.get(); }
  // How often this rank asked for progress.
  int steps() const { return steps_; }

 private:
  struct Peer {
    PeerState state = PeerState::kUnknown;
    gloo::internal::PeerAddress address;
    std::string trouble;
    uint64_t nonce = 0;  // once connected
  };
  void tryConnect(Peer& peer);

  FakeNetwork& network_;
  gloo::internal::PeerAddress address_;
  std::vector<Peer> peers_;  // by network_.mutex_, as what follows
  std::string cause_;
  uint64_t worldNonce_ = 0;
  std::shared_ptr<const gloo::internal::Profile> profile_;
  int steps_ = 0;
};

}  // namespace gloo_test
