#include "transport/base/topology.h"

#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "gloo/barrier.h"
#include "gloo/context.h"
#include "gloo/transport/shm/device.h"
#include "gloo/types.h"
#include "tests/algorithms/lanes.h"
#include "tests/support/spawn.h"
#include "transport/base/direct.h"
#include "transport/shm/segment.h"

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

// A machine with a NIC beside each of its two packages, and one beside both.
constexpr const char* kTwoNics = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
<object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x3"
  allowed_cpuset="0x3" nodeset="0x3" complete_nodeset="0x3"
  allowed_nodeset="0x3" gp_index="1">
 <object type="Package" os_index="0" cpuset="0x1" complete_cpuset="0x1"
   nodeset="0x1" complete_nodeset="0x1" gp_index="2">
  <object type="NUMANode" os_index="0" cpuset="0x1" complete_cpuset="0x1"
    nodeset="0x1" complete_nodeset="0x1" gp_index="3"
    local_memory="1073741824"/>
  <object type="Core" os_index="0" cpuset="0x1" complete_cpuset="0x1"
    nodeset="0x1" complete_nodeset="0x1" gp_index="4">
   <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1"
     nodeset="0x1" complete_nodeset="0x1" gp_index="5"/>
  </object>
  <object type="Bridge" gp_index="6" bridge_type="0-1" depth="0"
    bridge_pci="0000:[3a-3b]">
   <object type="PCIDev" gp_index="7" pci_busid="0000:3b:00.0"
     pci_type="0200 [15b3:1013] [15b3:0008] 00" pci_link_speed="0.0"/>
  </object>
 </object>
 <object type="Package" os_index="1" cpuset="0x2" complete_cpuset="0x2"
   nodeset="0x2" complete_nodeset="0x2" gp_index="8">
  <object type="NUMANode" os_index="1" cpuset="0x2" complete_cpuset="0x2"
    nodeset="0x2" complete_nodeset="0x2" gp_index="9"
    local_memory="1073741824"/>
  <object type="Core" os_index="0" cpuset="0x2" complete_cpuset="0x2"
    nodeset="0x2" complete_nodeset="0x2" gp_index="10">
   <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2"
     nodeset="0x2" complete_nodeset="0x2" gp_index="11"/>
  </object>
  <object type="Bridge" gp_index="12" bridge_type="0-1" depth="0"
    bridge_pci="0000:[d7-d8]">
   <object type="PCIDev" gp_index="13" pci_busid="0000:d8:00.1"
     pci_type="0207 [15b3:1013] [15b3:0008] 00" pci_link_speed="0.0"/>
  </object>
 </object>
 <object type="Bridge" gp_index="14" bridge_type="0-1" depth="0"
   bridge_pci="0000:[01-02]">
  <object type="PCIDev" gp_index="15" pci_busid="0000:02:00.0"
    pci_type="0200 [8086:1521] [8086:0001] 00" pci_link_speed="0.0"/>
 </object>
</object>
</topology>
)";

TEST(TopologyTest, ADeviceIsNearItsNode) {
  const Topology topology(kTwoNics);
  if (!known()) {
    EXPECT_EQ(topology.nodeOfDevice("0000:3b:00.0"), Topology::kUnknown);
    return;
  }
  EXPECT_EQ(topology.nodes(), 2);
  EXPECT_EQ(topology.nodeOfDevice("0000:3b:00.0"), 0);
  EXPECT_EQ(topology.nodeOfDevice("0000:d8:00.1"), 1);
  EXPECT_EQ(topology.nodeOfDevice("0000:02:00.0"), Topology::kUnknown);
  EXPECT_EQ(topology.nodeOfDevice("0000:3b:00.1"), Topology::kUnknown);
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

// The node on which the system is asked to have it; kUnknown: it was not.
int policyOf(const void* memory) {
  int mode = MPOL_DEFAULT;
  unsigned long nodes[16] = {};
  const long failed = ::syscall(SYS_get_mempolicy, &mode, nodes,
                                8 * sizeof(nodes), memory, MPOL_F_ADDR);
  return failed != 0 || mode == MPOL_DEFAULT
             ? Topology::kUnknown
             : __builtin_ctzl(nodes[0] != 0 ? nodes[0] : 1UL << 63);
}

class SharedPages {
 public:
  static constexpr size_t kBytes = 1 << 20;
  SharedPages()
      : memory_(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    EXPECT_NE(memory_, MAP_FAILED);
  }
  ~SharedPages() { ::munmap(memory_, kBytes); }
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;
  void* get() const { return memory_; }

 private:
  void* const memory_;
};

// Some containers forbid to ask for it, and some libraries cannot.
bool canPlace() {
  const SharedPages pages;
  unsigned long node = 1;
  return known() && ::syscall(SYS_mbind, pages.get(), SharedPages::kBytes,
                              MPOL_PREFERRED, &node, 64, 0) == 0;
}

TEST(TopologyTest, MemoryIsPlacedWhereItIsAskedFor) {
  const SharedPages pages;
  const Topology here("");
  EXPECT_EQ(policyOf(pages.get()), Topology::kUnknown);
  here.place(pages.get(), SharedPages::kBytes, Topology::kUnknown);
  EXPECT_EQ(policyOf(pages.get()), Topology::kUnknown);
  here.place(pages.get(), SharedPages::kBytes, 0);
  const int placed = canPlace() ? 0 : Topology::kUnknown;
  EXPECT_EQ(policyOf(pages.get()), placed);
  // A node that is not there. The memory can be used all the same.
  here.place(pages.get(), SharedPages::kBytes, 1000);
  EXPECT_EQ(policyOf(pages.get()), placed);
  std::memset(pages.get(), 1, SharedPages::kBytes);
}

// ---- Lanes ----

TEST(LanePlaces, EachRanksSlotsAreOnItsNode) {
  constexpr size_t kSlot = 16384;
  constexpr size_t kPage = 4096;
  std::vector<RankCores> ranks(3);
  ranks[0].node = 4;
  ranks[2].node = 5;  // that of rank 1 is not known
  const auto parts = DirectLanes::partsOf(kSlot, ranks);
  ASSERT_EQ(parts.size(), 4u * 2 * 2);  // lanes, halves, ranks
  size_t last = 0;
  for (size_t i = 0; i < parts.size(); i++) {
    EXPECT_EQ(parts[i].node, i % 2 == 0 ? 4 : 5);
    // The last of a lane ends in a page of its own.
    EXPECT_EQ(parts[i].bytes, i % 4 == 3 ? kSlot + kPage : kSlot);
    EXPECT_EQ(parts[i].begin % kPage, 0u);
    EXPECT_GE(parts[i].begin, last);
    last = parts[i].begin + parts[i].bytes;
    if (i % 2 == 1) {
      EXPECT_EQ(parts[i].begin, parts[i - 1].begin + 2 * kSlot);
    }
  }
  EXPECT_EQ(last, DirectLanes::memoryBytes(3, kSlot));
  EXPECT_TRUE(DirectLanes::partsOf(kSlot, {RankCores(), RankCores()}).empty());
}

// A rank tells its node itself. As many bits would be kept as it says.
TEST(LanePlaces, ANodeThatCannotBeIsNone) {
  std::vector<RankCores> ranks(3);
  ranks[0].node = INT32_MAX;
  ranks[1].node = 1023;
  ranks[2].node = 1024;
  const auto parts = DirectLanes::partsOf(16384, ranks);
  EXPECT_EQ(parts.size(), 4u * 2);
  for (const auto& part : parts) {
    EXPECT_EQ(part.node, 1023);
  }
}

// What is received is near who receives it.
TEST(SegmentPlaces, EachRingIsOnTheNodeOfItsReader) {
  const Topology here("");
  Topology::replaceInstance(&here);
  const int node = canPlace() ? here.home() : Topology::kUnknown;
  const shm::Secret secret = shm::makeSecret();
  for (const bool isMakers : {false, true}) {
    const shm::Homes homes{isMakers ? node : Topology::kUnknown,
                           isMakers ? Topology::kUnknown : node};
    const auto segment = shm::Segment::create({1024, 256 << 10}, secret, homes);
    const shm::RingMemory out = segment->outgoing(shm::End::kMaker);
    const shm::RingMemory in = segment->incoming(shm::End::kMaker);
    EXPECT_EQ(policyOf(in.bytes), isMakers ? node : Topology::kUnknown);
    EXPECT_EQ(policyOf(out.bytes), isMakers ? Topology::kUnknown : node);
  }
  Topology::replaceInstance(nullptr);
}

// docs/shm.md has this table. (Links populate what they are given to 33 MiB.)
TEST(LanePlaces, TakeNoMoreThanIsDocumented) {
  struct Row {
    int most;  // ranks
    size_t slot, crowdedSlot;
  };
  constexpr size_t kKiB = 1024;
  for (int size = 3, i = 0; size <= internal::Direct::kMaxRanks; size++) {
    constexpr Row kRows[] = {{4, 256, 512}, {8, 128, 512}, {16, 64, 256},
                             {32, 32, 128}, {64, 32, 64},  {128, 16, 32}};
    i += size > kRows[i].most ? 1 : 0;
    const size_t slot = DirectLanes::slotBytesFor(size, false);
    const size_t crowdedSlot = DirectLanes::slotBytesFor(size, true);
    EXPECT_EQ(slot, kRows[i].slot * kKiB) << size;
    EXPECT_EQ(crowdedSlot, kRows[i].crowdedSlot * kKiB) << size;
    EXPECT_TRUE(DirectLanes::maySlotsHave(size, slot));
    EXPECT_TRUE(DirectLanes::maySlotsHave(size, crowdedSlot));
    EXPECT_FALSE(DirectLanes::maySlotsHave(size, 2 * crowdedSlot));
    EXPECT_LE(DirectLanes::memoryBytes(size, slot), 17 * kKiB * kKiB);
    EXPECT_LE(DirectLanes::memoryBytes(size, crowdedSlot), 33 * kKiB * kKiB);
  }
  EXPECT_LE(DirectLanes::memoryBytes(2, DirectLanes::slotBytesFor(2, true)),
            5 * kKiB * kKiB);
}

// This host's only node, say, as if there were others.
TEST(LanePlaces, AreAskedForWhenRanksConnect) {
  using test::laneOf;
  const Topology here("");
  Topology::replaceInstance(&here);
  const int node = canPlace() ? here.home() : Topology::kUnknown;
  for (const int size : {2, 3}) {
    test::spawnContexts(
        test::Mode::kProcesses, [] { return shm::CreateDevice(); }, size,
        [&](const std::shared_ptr<gloo::Context>& context) {
          for (uint32_t tag = 0; tag < 2; tag++) {
            const internal::Lane& lane =
                laneOf(context, kBarrierSlotPrefix, tag);
            for (int rank = 0; rank < context->size; rank++) {
              for (const uint64_t round : {0, 1}) {
                const char* const slot = lane.slot(rank, round);
                EXPECT_EQ(policyOf(slot), node);
                EXPECT_EQ(policyOf(slot + lane.slotBytes() - 1), node);
                EXPECT_EQ(policyOf(&lane.line(rank, round)),
                          Topology::kUnknown);
              }
            }
          }
          barrier(BarrierOptions(context));
        });
  }
  Topology::replaceInstance(nullptr);
}

}  // namespace
}  // namespace transport::base
GLOO_NAMESPACE_END
