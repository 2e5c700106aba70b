// Where memory, cores and devices of this host are: NUMA nodes, as hwloc sees
// them. On a host with one node, or in a library that was built without hwloc,
// there is nothing to place, and everything is equally near.
//
// What is done with it is a hint: who waits longer for memory computes the
// same, and the CPUs that a user or a launcher has given a process stay as they
// are.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// Immutable; thread-safe.
class Topology {
 public:
  static constexpr int kUnknown = -1;

  // Whether a system may have a node of that number. One that another process
  // has told may be any: as many bits would be kept as it says.
  static constexpr bool mayBe(int node) { return node >= 0 && node < kMost; }

  // This machine's if it has several nodes, looked up at the first call, in
  // some milliseconds; else one that knows nothing.
  static const Topology& instance();
  // For tests: another one, which has to stay; null: what instance() finds.
  static void replaceInstance(const Topology* topology);

  // This machine's; or, for tests, one that hwloc makes up ("numa:2 core:4
  // pu:2"), or that lstopo has recorded as XML ("<...").
  explicit Topology(const std::string& description);
  ~Topology();
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  // 0: unknown.
  int cores() const;
  int nodes() const;

  // The node on which this thread may run, by its number in the system;
  // kUnknown if it may run on several.
  int home() const;
  // Near which a device is ("0000:3b:00.0"); kUnknown also if it is equally
  // near to several.
  int nodeOfDevice(const std::string& busId) const;

  // Asks that these pages, which begin at a page, be on this node, if it has
  // room (mbind(2)); those that are there already are moved, unless others have
  // mapped them. Nothing happens unless mayBe(node), or where that is
  // forbidden.
  void place(void* memory, size_t bytes, int node) const;

  // "8 cores, 2 NUMA nodes (0: 4 cores, 31 GiB; 1: 4 cores, 31 GiB)".
  std::string str() const;

 private:
  static constexpr int kMost = 1024;  // as many as Linux has
  struct Impl;
  Topology();

  std::unique_ptr<const Impl> impl_;  // null: nothing is known
};

}  // namespace transport::base
GLOO_NAMESPACE_END
