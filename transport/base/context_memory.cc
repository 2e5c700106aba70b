// Memory that other ranks, or the device, may reach.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "gloo/common/string.h"
#include "transport/base/context.h"
#include "transport/base/kept_memory.h"
#include "transport/base/region_key.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

using internal::Cause;

uint32_t Context::exportRegion(void* ptr, size_t size) {
  throwIfFailed("getRemoteKey");
  const uint32_t id = nextExport_++;
  ExportedRegion& region = exports_[id];
  region.ptr = static_cast<char*>(ptr);
  region.size = size;
  region.region = device_->factory().registerMemory(
      ptr, size, memoryKindOf(ptr, size), Rights::kRemoteBoth);
  counts().registrations += region.region != nullptr ? 1 : 0;
  return id;
}

// From now on the key is of no use; what is on its way is let go first.
void Context::withdrawRegion(ProgressDomain::Lock& lock, uint32_t id) {
  drain(
      lock,
      [this, id] {
        const auto receives = [id](const auto& pair) {
          return pair != nullptr &&
                 static_cast<const Pair&>(*pair).receivingExport(id);
        };
        return exports_.at(id).inUse == 0 &&
               std::none_of(pairs_.begin(), pairs_.end(), receives);
      },
      "destroying an exported buffer");
  exports_.erase(id);
}

ExportedRegion* Context::exported(uint32_t id) {
  const auto it = exports_.find(id);
  return it != exports_.end() ? &it->second : nullptr;
}

// put and get with the own rank's memory.
void Context::copyLocal(const RegionKey& key, bool isPut, char* local,
                        size_t roffset, size_t bytes) {
  throwIfFailed(isPut ? "put" : "get");
  ExportedRegion* region = exported(key.id);
  if (region == nullptr || key.nonce != nonce_) {
    failNew(Cause::Kind::kIo, rank(),
            MakeString("rank ", rank(), ": the memory behind the key is gone"));
    throwIfFailed(isPut ? "put" : "get");
  }
  char* remote = region->ptr + roffset;
  if (bytes > 0) {
    std::memmove(isPut ? remote : local, isPut ? local : remote, bytes);
  }
}

KeptMemory::KeptMemory(Context& context, void* data, size_t bytes)
    : context_(context), data_(static_cast<char*>(data)), bytes_(bytes) {}

KeptMemory::~KeptMemory() {
  if (!origin_.inherited()) {
    const auto lock = context_.lock();
    context_.forgetKept(*this);
    regions_ = {};
  }
}

bool KeptMemory::holds(const Operation& op) const {
  return data_ <= op.data && op.data + op.bytes <= data_ + bytes_;
}

const Region* KeptMemory::regionFor(Rights rights) {
  auto& region = regions_.at(static_cast<size_t>(rights));
  if (region == nullptr) {
    region = context_.device().factory().registerMemory(
        data_, bytes_, memoryKindOf(data_, bytes_), rights);
    context_.counts().registrations += region != nullptr ? 1 : 0;
  }
  return region.get();
}

std::unique_ptr<internal::KeptMemory> Context::keep(void* data, size_t bytes) {
  if (bytes == 0) {
    return nullptr;
  }
  auto kept = std::make_unique<KeptMemory>(*this, data, bytes);
  const auto lock = this->lock();
  kept_.emplace(static_cast<const char*>(data), kept.get());
  return kept;
}

void Context::forgetKept(KeptMemory& kept) {
  std::erase_if(kept_,
                [&](const auto& entry) { return entry.second == &kept; });
}

// Of kept memory that begins at the same byte or before the operation's, the
// nearest; else for the operation alone.
const Region* Context::registerFor(Operation& op, Rights rights) {
  if (auto it = kept_.upper_bound(op.data); it != kept_.begin()) {
    KeptMemory& nearest = *std::prev(it)->second;
    if (nearest.holds(op)) {
      op.regionOffset = nearest.offsetOf(op);
      return nearest.regionFor(rights);
    }
  }
  auto region = device_->factory().registerMemory(
      op.data, op.bytes, memoryKindOf(op.data, op.bytes), rights);
  if (region == nullptr) {
    return nullptr;
  }
  counts().registrations++;
  return (registered_[&op] = std::move(region)).get();
}

}  // namespace transport::base
GLOO_NAMESPACE_END
