#include "transport/base/topology.h"

#if GLOO_USE_HWLOC
#include <hwloc.h>

#include <algorithm>
#include <fstream>
#endif

#include <atomic>

#include "gloo/common/string.h"
#include "gloo/internal/fork.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

std::atomic<const Topology*> replaced{nullptr};

}  // namespace

void Topology::replaceInstance(const Topology* topology) {
  replaced.store(topology, std::memory_order_release);
}

#if GLOO_USE_HWLOC

namespace {

struct FreeBitmap {
  void operator()(hwloc_bitmap_t set) const { hwloc_bitmap_free(set); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

Bitmap makeBitmap() { return Bitmap(hwloc_bitmap_alloc()); }

int onlyOne(hwloc_const_nodeset_t set) {
  return hwloc_bitmap_weight(set) == 1 ? hwloc_bitmap_first(set)
                                       : Topology::kUnknown;
}

// Asked first, since hwloc looks at all devices.
bool hasSeveralNodes() {
  std::ifstream file("/sys/devices/system/node/online");
  std::string nodes;
  file >> nodes;
  return nodes.find_first_of(",-") != std::string::npos;
}

// False: it means nothing.
bool describe(hwloc_topology_t topology, const std::string& description) {
  if (description.empty()) {
    return true;
  }
  return (description.front() == '<'
              ? hwloc_topology_set_xmlbuffer(
                    topology, description.c_str(),
                    static_cast<int>(description.size() + 1))
              : hwloc_topology_set_synthetic(topology, description.c_str())) ==
         0;
}

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const {
    hwloc_topology_destroy(topology);
  }
};

}  // namespace

struct Topology::Impl {
  std::unique_ptr<hwloc_topology, DestroyTopology> topology;

  hwloc_topology_t get() const { return topology.get(); }
  int count(hwloc_obj_type_t type) const {
    return std::max(0, hwloc_get_nbobjs_by_type(get(), type));
  }
};

Topology::Topology() = default;

Topology::Topology(const std::string& description) {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) {
    return;
  }
  auto impl = std::make_unique<Impl>();
  impl->topology.reset(made);
  // Linux itself tells of processors and NICs. To look for GPUs would load
  // their drivers, and libpciaccess reads the names of all devices there are.
  for (const char* other :
       {"pci", "cuda", "nvml", "rsmi", "levelzero", "opencl", "gl"}) {
    hwloc_topology_set_components(
        made, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, other);
  }
  hwloc_topology_set_io_types_filter(made, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  if (describe(made, description) && hwloc_topology_load(made) == 0) {
    impl_ = std::move(impl);
  }
}

Topology::~Topology() = default;

const Topology& Topology::instance() {
  if (const Topology* other = replaced.load(std::memory_order_acquire)) {
    return *other;
  }
  // Never destroyed: contexts take leave when the process exits.
  return *internal::madeOnce([] {
    return std::unique_ptr<Topology>(hasSeveralNodes() ? new Topology("")
                                                       : new Topology);
  });
}

int Topology::cores() const { return impl_ ? impl_->count(HWLOC_OBJ_CORE) : 0; }

int Topology::nodes() const {
  return impl_ ? impl_->count(HWLOC_OBJ_NUMANODE) : 0;
}

int Topology::home() const {
  const Bitmap cpus = makeBitmap();
  const Bitmap nodes = makeBitmap();
  if (!impl_ ||
      hwloc_get_cpubind(impl_->get(), cpus.get(), HWLOC_CPUBIND_THREAD) != 0) {
    return kUnknown;
  }
  hwloc_cpuset_to_nodeset(impl_->get(), cpus.get(), nodes.get());
  return onlyOne(nodes.get());
}

int Topology::nodeOfDevice(const std::string& busId) const {
  hwloc_obj_t device =
      impl_ ? hwloc_get_pcidev_by_busidstring(impl_->get(), busId.c_str())
            : nullptr;
  return device != nullptr
             ? onlyOne(
                   hwloc_get_non_io_ancestor_obj(impl_->get(), device)->nodeset)
             : kUnknown;
}

void Topology::place(void* memory, size_t bytes, int node) const {
  if (impl_ && mayBe(node)) {
    const Bitmap nodes = makeBitmap();
    hwloc_bitmap_set(nodes.get(), static_cast<unsigned>(node));
    // Without HWLOC_MEMBIND_STRICT: preferred.
    (void)hwloc_set_area_membind(
        impl_->get(), memory, bytes, nodes.get(), HWLOC_MEMBIND_BIND,
        HWLOC_MEMBIND_BYNODESET | HWLOC_MEMBIND_MIGRATE);
  }
}

std::string Topology::str() const {
  if (!impl_) {
    return "unknown";
  }
  std::string text = MakeString(cores(), " cores, ", nodes(), " NUMA node",
                                nodes() == 1 ? "" : "s");
  for (int i = 0; i < nodes(); i++) {
    hwloc_obj_t node = hwloc_get_obj_by_type(impl_->get(), HWLOC_OBJ_NUMANODE,
                                             static_cast<unsigned>(i));
    text +=
        MakeString(i == 0 ? " (" : "; ", node->os_index, ": ",
                   hwloc_get_nbobjs_inside_cpuset_by_type(
                       impl_->get(), node->cpuset, HWLOC_OBJ_CORE),
                   " cores, ", node->attr->numanode.local_memory >> 30, " GiB");
  }
  return nodes() == 0 ? text : text + ")";
}

#else

struct Topology::Impl {};

Topology::Topology() = default;
Topology::Topology(const std::string&) {}
Topology::~Topology() = default;

const Topology& Topology::instance() {
  if (const Topology* other = replaced.load(std::memory_order_acquire)) {
    return *other;
  }
  return *internal::madeOnce(
      [] { return std::unique_ptr<Topology>(new Topology("")); });
}

int Topology::cores() const { return 0; }
int Topology::nodes() const { return 0; }
int Topology::home() const { return kUnknown; }
int Topology::nodeOfDevice(const std::string&) const { return kUnknown; }
void Topology::place(void*, size_t, int) const {}
std::string Topology::str() const {
  return "unknown: this build is without hwloc";
}

#endif

}  // namespace transport::base
GLOO_NAMESPACE_END
