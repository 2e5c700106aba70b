#include "transport/base/topology.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

// A library without hwloc knows nothing, and nothing comes of asking it.
bool known() { return Topology("").cores() > 0; }

TEST(TopologyTest, AHostIsDescribedWithItsNodes) {
  const Topology topology("numa:2 core:4 pu:2");
  if (!known()) {
    EXPECT_EQ(topology.str(), "unknown: this build is without hwloc");
    return;
  }
  EXPECT_EQ(topology.cores(), 8);
  EXPECT_EQ(topology.nodes(), 2);
  EXPECT_EQ(topology.str().rfind("8 cores, 2 NUMA nodes (0: 4 cores, ", 0), 0u)
      << topology.str();
}

TEST(TopologyTest, WhatIsNotThereIsUnknown) {
  const Topology topology("numa:2 core:4 pu:2");
  EXPECT_EQ(topology.nodeOfDevice("0000:3b:00.0"), Topology::kUnknown);
  EXPECT_EQ(topology.nodeOfDevice("no device"), Topology::kUnknown);
  const Topology wrong("nonsense");
  EXPECT_EQ(wrong.cores(), 0);
  EXPECT_EQ(wrong.home(), Topology::kUnknown);
}

TEST(TopologyTest, OneNodeIsNothingToChooseFrom) {
  const Topology here("");
  if (here.nodes() <= 1) {
    EXPECT_EQ(Topology::instance().nodes(), 0);
    EXPECT_EQ(Topology::instance().home(), Topology::kUnknown);
  } else {
    EXPECT_EQ(Topology::instance().nodes(), here.nodes());
  }
}

// Wherever it ends up.
TEST(TopologyTest, PlacedMemoryCanBeUsed) {
  constexpr size_t kBytes = 1 << 20;
  void* const memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const Topology here("");
  for (const int node : {0, 1000, Topology::kUnknown}) {
    here.place(memory, kBytes, node);
    std::memset(memory, node, kBytes);
  }
  ::munmap(memory, kBytes);
}

}  // namespace
}  // namespace transport::base
GLOO_NAMESPACE_END
