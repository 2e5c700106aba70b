// Memory that other ranks, or the device, may reach.
#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <tuple>
#include <utility>

#include "gloo/common/logging.h"
#include "gloo/common/string.h"
#include "gloo/internal/cuda.h"
#include "transport/base/context.h"
#include "transport/base/kept_memory.h"
#include "transport/base/region_key.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

using internal::Cause;

std::unique_ptr<Region> Context::registerMemory(void* ptr, size_t size,
                                                const MemoryKind& kind,
                                                Rights rights,
                                                ProgressDomain::Lock* apart) {
  LinkFactory& factory = device_->factory();
  if (apart != nullptr && apart->owns_lock()) {
    apart->unlock();
  }
  auto region = factory.registerMemory(ptr, size, kind, rights);
  if (region == nullptr && deviceOf(kind) >= 0) {
    GLOO_THROW_INVALID_OPERATION_EXCEPTION("transport ", factory.kind(),
                                           " cannot reach ", kind.str(),
                                           ": copy it to host memory first");
  }
  if (apart != nullptr) {
    *apart = lock();
  }
  counts().registrations += region != nullptr ? 1 : 0;
  return region;
}

namespace {

Rights rightsFor(RemoteAccess access) {
  switch (access) {
    case RemoteAccess::kRead:
      return Rights::kRemoteRead;
    case RemoteAccess::kWrite:
      return Rights::kRemoteWrite;
    case RemoteAccess::kReadWrite:
      break;
  }
  return Rights::kRemoteBoth;
}

}  // namespace

uint32_t Context::exportRegion(ProgressDomain::Lock& lock, void* ptr,
                               size_t size, RemoteAccess access) {
  throwIfFailed("getRemoteKey");
  const MemoryKind kind = memoryKindOf(ptr, size);
  ExportedRegion region;
  region.ptr = static_cast<char*>(ptr);
  region.size = size;
  region.access = access;
  region.device = deviceOf(kind);
  if (region.device < 0 && access != RemoteAccess::kRead) {
    lock.unlock();  // a process may have thousands of mappings
    const bool writable = mayWrite(ptr, size);
    lock = this->lock();
    throwIfFailed("getRemoteKey");
    if (!writable && access == RemoteAccess::kWrite) {
      GLOO_THROW_IO_EXCEPTION("getRemoteKey for put of ", size,
                              " bytes that this process may only read: ask for "
                              "RemoteAccess::kRead");
    }
    region.access = writable ? access : RemoteAccess::kRead;
  }
  if (needsRegions() || region.device >= 0) {
    region.region =
        registerMemory(ptr, size, kind, rightsFor(region.access), &lock);
    throwIfFailed("getRemoteKey");
  }
  const uint32_t id = nextExport_++;
  exports_.emplace(id, std::move(region));
  return id;
}

// Whether any peer may need registered memory.
bool Context::needsRegions() const {
  const bool unknown = capsOfLinks().needsRegions;
  for (int peer = 0; peer < size(); peer++) {
    const Pair* pair = peer == rank() ? nullptr : pairAt(peer);
    if (pair != nullptr ? pair->needsRegions() : peer != rank() && unknown) {
      return true;
    }
  }
  return false;
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
      [] { return "destroying a buffer with a remote key"; },
      [this, id](const Pair& pair) {
        const Operation* op = pending_.front();
        while (op != nullptr && (op->kind != kGetReply || op->index != id ||
                                 op->peer != pair.peer())) {
          op = op->nextPending;
        }
        return op != nullptr || pair.receivingExport(id);
      });
  {
    const auto region = exports_.extract(id);
    lock.unlock();  // to deregister it takes long
  }
  lock = this->lock();
}

ExportedRegion* Context::exported(uint32_t id) {
  const auto it = exports_.find(id);
  return it != exports_.end() ? &it->second : nullptr;
}

ExportedRegion* Context::exportedFor(RemoteAccess use, uint32_t id,
                                     uint64_t offset, uint64_t bytes,
                                     std::string* why) {
  ExportedRegion* const region = exported(id);
  if (region == nullptr) {
    *why = "the memory behind the key is gone";
  } else if (!allows(region->access, use)) {
    *why = MakeString("its memory was exported for ",
                      use == RemoteAccess::kWrite ? "get" : "put", " only");
  } else if (offset > region->size || bytes > region->size - offset) {
    *why = MakeString("bytes ", offset, "+", bytes,
                      " are outside the exported ", region->size, " bytes");
  } else {
    return region;
  }
  return nullptr;
}

// put and get with the own rank's memory.
void Context::copyLocal(const RegionKey& key, bool isPut, char* local,
                        int device, size_t roffset, size_t bytes) {
  throwIfFailed(isPut ? "put" : "get");
  const auto use = isPut ? RemoteAccess::kWrite : RemoteAccess::kRead;
  std::string why = "the memory behind the key is gone";
  ExportedRegion* const region =
      key.nonce == nonce_ ? exportedFor(use, key.id, roffset, bytes, &why)
                          : nullptr;
  if (region == nullptr) {
    failNew(Cause::Kind::kIo, rank(), MakeString("rank ", rank(), ": ", why));
    throwIfFailed(isPut ? "put" : "get");
  }
  char* remote = region->ptr + roffset;
  if (!copyMemory(std::max(device, region->device), isPut ? remote : local,
                  isPut ? local : remote, bytes)) {
    throwIfFailed(isPut ? "put" : "get");
  }
}

bool Context::copyMemory(int device, void* to, const void* from, size_t bytes) {
  if (bytes == 0) {
    return true;
  }
  if (device < 0) {
    std::memmove(to, from, bytes);
    return true;
  }
  const std::string why = internal::copyCuda(device, to, from, bytes);
  if (!why.empty()) {
    failNew(Cause::Kind::kIo, rank(),
            MakeString("rank ", rank(), ": cannot copy ", bytes,
                       " bytes to or from CUDA device ", device, ": ", why));
  }
  return why.empty();
}

bool Context::makeVisible(int device, const void* ptr) {
  const std::string why = internal::flushCuda(device, ptr);
  if (!why.empty()) {
    failNew(Cause::Kind::kIo, rank(),
            MakeString("rank ", rank(),
                       ": what was received may be hidden from"
                       " the kernels of CUDA device ",
                       device, ": ", why));
  }
  return why.empty();
}

KeptMemory::KeptMemory(Context& context, MemoryKind kind, void* data,
                       size_t bytes, bool bothWays)
    : context_(context),
      alive_(context.alive()),
      kind_(kind),
      bothWays_(bothWays),
      data_(static_cast<char*>(data)),
      bytes_(bytes) {}

KeptMemory::~KeptMemory() {
  if (!origin_.inherited() && !alive_.expired()) {
    auto lock = context_.lock();
    context_.forgetKept(*this);
    const auto regions = regions_->end();
    lock.unlock();
  }
}

KeptMemory* KeptMemory::of(const ByFirstByte& all,
                           const internal::MemoryRange& bytes,
                           const internal::MemoryRange& owned, Rights rights) {
  KeptMemory* registered = nullptr;
  KeptMemory* own = nullptr;
  constexpr int kLooks = 8;
  auto it = all.upper_bound(bytes.data);
  for (int look = 0; look < kLooks && it != all.begin(); look++) {
    KeptMemory& kept = *(--it)->second;
    const internal::MemoryRange range{kept.data(), kept.bytes()};
    if (!range.holds(bytes)) {
      continue;
    }
    if (kept.isRegistered(rights)) {
      if (registered == nullptr || kept.bytes() <= registered->bytes()) {
        registered = &kept;
      }
    } else if (owned.holds(range) &&
               (own == nullptr || kept.bytes() >= own->bytes())) {
      own = &kept;
    }
  }
  return registered != nullptr ? registered : own;
}

KeptMemory* KeptMemory::of(const ByFirstByte& all,
                           const internal::Operation& op, Rights rights) {
  const internal::MemoryRange bytes{op.data, op.bytes};
  return of(all, bytes, op.within.bytes > 0 ? op.within : bytes, rights);
}

// What a peer may write can be read here all the same.
Rights KeptMemory::effective(Rights rights) const {
  return bothWays_ && rights == Rights::kLocal ? Rights::kRemoteWrite : rights;
}

std::shared_ptr<const Region> KeptMemory::regionFor(Rights rights) {
  rights = effective(rights);
  auto& region = regions_->of.at(static_cast<size_t>(rights));
  if (region == nullptr) {
    region = context_.registerMemory(data_, bytes_, kind_, rights);
  }
  return region;
}

bool KeptMemory::takesLong(Rights rights) const {
  return bytes_ >= kLong && deviceOf(kind_) < 0 && !isRegistered(rights);
}

// Another owner may destroy this as soon as the lock is free: what is needed
// after that is copied. Threads that want the same take turns; one that drives
// does not wait for its turn, and may have registered it too.
void KeptMemory::registerAhead(ProgressDomain::Lock& lock, LinkFactory& factory,
                               Rights rights) {
  Context& context = context_;
  const auto regions = regions_;
  const auto [data, bytes, kind] = std::tuple(data_, bytes_, kind_);
  rights = effective(rights);
  auto& region = regions->of.at(static_cast<size_t>(rights));
  lock.unlock();
  const std::lock_guard<std::mutex> turn(regions->turn);
  lock = context.lock();
  if (regions->ended || region != nullptr) {
    return;
  }
  lock.unlock();
  std::shared_ptr<const Region> made;
  std::exception_ptr error;
  try {
    made = factory.registerMemory(data, bytes, kind, rights);
  } catch (const std::exception&) {
    error = std::current_exception();
  }
  lock = context.lock();
  if (regions->ended || region != nullptr) {
    return;
  }
  if (error != nullptr) {
    std::rethrow_exception(error);
  }
  context.counts().registrations += made != nullptr ? 1 : 0;
  region = std::move(made);
}

std::unique_ptr<internal::KeptMemory> Context::keep(void* data, size_t bytes,
                                                    bool bothWays) {
  if (!capsOfLinks().needsRegions) {
    return nullptr;
  }
  return keepAs(memoryKindOf(data, bytes), data, bytes, bothWays);
}

bool Context::isBetterCopied(const internal::MemoryRange& vector,
                             size_t bytes) {
  if (bytes > capsOfLinks().callBytes ||
      deviceOf(memoryKindOf(vector.data, vector.bytes)) >= 0) {
    return false;
  }
  const auto lock = this->lock();
  const auto isKeptFor = [&](Rights rights) {
    return KeptMemory::of(kept_, vector, vector, rights) != nullptr;
  };
  return needsRegions() && !isKeptFor(Rights::kLocal) &&
         !isKeptFor(Rights::kRemoteWrite);
}

std::unique_ptr<KeptMemory> Context::keepAs(MemoryKind kind, void* data,
                                            size_t bytes, bool bothWays) {
  if (bytes == 0) {
    return nullptr;
  }
  auto kept = std::make_unique<KeptMemory>(*this, kind, data, bytes, bothWays);
  const bool managed =
      capsOfLinks().needsRegions && internal::isManagedCuda(data);
  const auto lock = this->lock();
  if (managed && needsRegions()) {
    requireUnmanaged(data);  // before any message needs it registered
  }
  kept_.emplace(static_cast<const char*>(data), kept.get());
  if (deviceOf(kind) >= 0) {
    // Whether it can be reached is known when it was tried.
    (void)kept->regionFor(Rights::kLocal);
  }
  return kept;
}

void Context::forgetKept(KeptMemory& kept) {
  auto [it, end] = kept_.equal_range(kept.data());
  while (it != end && it->second != &kept) {
    ++it;
  }
  if (it != end) {
    kept_.erase(it);
  }
}

bool Context::registerAhead(ProgressDomain::Lock& lock, const Operation& op,
                            Rights rights) {
  KeptMemory* const kept = KeptMemory::of(kept_, op, rights);
  if (kept == nullptr || !kept->takesLong(rights)) {
    return false;
  }
  kept->registerAhead(lock, device_->factory(), rights);
  return true;
}

// Else for the operation alone.
void Context::registerFor(Operation& op, Rights rights) {
  if (KeptMemory* const kept = KeptMemory::of(kept_, op, rights)) {
    op.regionOffset = kept->offsetOf(op);
    op.region = kept->regionFor(rights);
    return;
  }
  op.region = registerMemory(op.data, op.bytes, memoryKindOf(op.data, op.bytes),
                             rights);
}

}  // namespace transport::base
GLOO_NAMESPACE_END
