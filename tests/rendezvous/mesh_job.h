// Several ranks, one thread each, that connect through fake meshes.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gloo/common/error.h"
#include "gloo/rendezvous/hash_store.h"
#include "gloo/rendezvous/store.h"
#include "rendezvous/connect_mesh.h"
#include "tests/rendezvous/fake_mesh.h"

namespace gloo_test {

// One rank's attempt. The mesh stays alive as long as this object, as that of
// a running job would; a failed one is closed at once.
struct MeshRank {
  MeshRank(FakeNetwork& network, int rank, int size, uint64_t hostId = 1,
           int pid = 0)
      : mesh(std::make_unique<FakeMesh>(network, rank, size, hostId, pid)) {}

  void connect(gloo::IStore& store, std::chrono::milliseconds timeout,
               const gloo::internal::Profile& wanted = {}) {
    const auto begin = std::chrono::steady_clock::now();
    try {
      gloo::rendezvous::connectMesh(*mesh, store,
                                    gloo::Deadline::after(timeout), wanted);
    } catch (const gloo::IoException& error) {
      this->error = error.what();
      mesh.reset();
    }
    seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count();
  }

  std::unique_ptr<FakeMesh> mesh;
  std::string error;
  double seconds = 0;
};

// All run at the same time; returns when all have ended.
inline void runTogether(const std::vector<std::function<void()>>& bodies) {
  std::vector<std::thread> threads;
  for (const auto& body : bodies) {
    threads.emplace_back(body);
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

using StoreOf = std::function<std::shared_ptr<gloo::rendezvous::Store>()>;

// A whole job of `size` ranks, each with a store of its own.
inline std::vector<MeshRank> runJob(FakeNetwork& network, int size,
                                    const StoreOf& open,
                                    std::chrono::milliseconds timeout) {
  std::vector<MeshRank> ranks;
  for (int rank = 0; rank < size; rank++) {
    ranks.emplace_back(network, rank, size);
  }
  std::vector<std::function<void()>> bodies;
  for (auto& rank : ranks) {
    bodies.push_back([&, timeout] {
      const auto store = open();
      rank.connect(*store, timeout);
    });
  }
  runTogether(bodies);
  return ranks;
}

constexpr std::chrono::seconds kLong{20};

inline std::shared_ptr<gloo::rendezvous::HashStore> borrow(
    gloo::rendezvous::HashStore& store) {
  return {std::shared_ptr<void>(), &store};
}

inline void expectConnected(const std::vector<MeshRank>& ranks) {
  for (const auto& rank : ranks) {
    ASSERT_EQ(rank.error, "");
    EXPECT_EQ(rank.mesh->worldNonce(), ranks[0].mesh->address().nonce);
    ASSERT_NE(rank.mesh->profile(), nullptr);
    EXPECT_EQ(rank.mesh->profile()->hostOfRank.size(), ranks.size());
  }
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace gloo_test
