// Meshes whose pairs are connected at their first use, and what comes between.
#include <memory>
#include <string>

#include "gloo/internal/mesh.h"
#include "tests/transport/contract/contract.h"
#include "transport/base/context.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using internal::Mesh;
using std::chrono::milliseconds;

// What rank `context->rank` throws that does `what`.
template <typename What>
std::string complaint(const What& what) {
  try {
    what();
  } catch (const Exception& e) {
    return e.what();
  }
  return "";
}

ContextPtr connectedAt(const Seat& seat,
                       const std::shared_ptr<transport::Device>& device) {
  auto context = device->createContext(seat.rank, seat.size);
  context->setTimeout(contextTimeout());
  context->createAndConnectAllPairs(seat.store);
  return context;
}

class OtherMeshTest : public ContractTest {};

// Rank 1 of another mesh has found the address of rank 0 of this one, takes it
// for that of its own, and gives up.
TEST_P(OtherMeshTest, WhatCannotBeLeavesACompleteOneAlone) {
  run(2, [&](const ContextPtr& context) {
    meet(context);
    if (context->rank == 0) {
      const auto stranger = maker()()->createContext(1, 2);
      Mesh& mesh = Mesh::of(*stranger);
      mesh.addPeer(Mesh::of(*context).address());
      while (mesh.peerState(0) == Mesh::PeerState::kConnecting) {
        mesh.progress(milliseconds(10));
      }
      EXPECT_EQ(mesh.peerState(0), Mesh::PeerState::kRefused);
      mesh.refuse("there is no such mesh");
    }
    meet(context);
  });
}

// It is alive all the same, and says so.
TEST_P(OtherMeshTest, ACompleteMeshIsAlive) {
  run(2, [&](const ContextPtr& context) {
    if (context->rank == 0) {
      const auto stranger = maker()()->createContext(1, 2);
      EXPECT_TRUE(Mesh::of(*stranger).isAlive(Mesh::of(*context).address(),
                                              milliseconds(10000)));
    }
    meet(context);
  });
}

GLOO_CONTRACT_SUITE(OtherMeshTest);

class LazyTest : public ContractTest {};

// What the store has of the first one is no address of the second's.
TEST_P(LazyTest, ASecondMeshOnTheSameStoreIsAnother) {
  spawnSeats(mode(), 3, [&](Seat& seat) {
    const auto device = maker()();
    const ContextPtr first = connectedAt(seat, device);
    const ContextPtr second = connectedAt(seat, device);
    const ContextPtr third = connectedAt(seat, maker()());
    for (const ContextPtr& context : {second, first, third}) {
      meet(context);
    }
  });
}

std::vector<ContractCase> lazyCases() {
  std::vector<ContractCase> cases = contractCases();
  std::erase_if(cases, [](const ContractCase& c) {
    return c.transport->name.find("lazy") == std::string::npos;
  });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(, LazyTest, ::testing::ValuesIn(lazyCases()),
                         [](const auto& info) {
                           return info.param.transport->name + "_" +
                                  name(info.param.mode);
                         });

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
