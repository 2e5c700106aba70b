// Memory that the device reaches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "gloo/config.h"
#include "transport/base/link.h"
#include "transport/ibverbs/handles.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {

// For people: the limit of locked memory, to which drivers also count the
// queues that they make, and how it is raised; empty: there is none.
std::string lockedMemoryLimit();

// Registered for one use: peers have no more rights than it needs, and none
// once this is destroyed. Immutable.
class MemoryRegion final : public base::Region {
 public:
  // A region without bytes is not registered. Throws IoException with the
  // remedy; InvalidOperationException, with what is missing, for memory of a
  // CUDA device that cannot be reached: by a dma-buf, or by peer memory (a
  // kernel module that makes addresses of the device registrable), and for
  // CUDA's managed memory.
  MemoryRegion(ibv_pd* pd, void* ptr, size_t bytes, base::Rights rights,
               const base::MemoryKind& kind = {});

  uint64_t remoteAddress() const override { return address_; }
  uint32_t remoteKey() const override { return mr_ ? mr_->rkey : 0; }
  uint32_t localKey() const { return mr_ ? mr_->lkey : 0; }
  // The processor may read it, so it may go inline.
  bool isHosts() const { return isHosts_; }

 private:
  const uint64_t address_;
  const bool isHosts_;
  MrHandle mr_;
};

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
