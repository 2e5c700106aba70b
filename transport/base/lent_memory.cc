#include "transport/base/lent_memory.h"

#include "gloo/common/error.h"
#include "gloo/common/logging.h"
#include "transport/base/context.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

using internal::Place;

LentMemory::LentMemory(Context& context, const std::vector<Name>& names,
                       const Name& token)
    : context_(context), token_(MemorySharer::tokenOf(token, context.rank())) {
  for (int rank = 0; rank < context.size(); rank++) {
    if (rank != context.rank()) {
      takers_.push_back({names[static_cast<size_t>(rank)],
                         MemorySharer::tokenOf(token, rank)});
    }
  }
}

// What was handed over in an operation that failed then is still there.
LentMemory::~LentMemory() {
  if (!origin_.inherited()) {
    context_.device().factory().sharer()->refuseLoans(token_);
  }
}

LentMemory::State LentMemory::stateOf(uint64_t id) {
  const MutexLock guard(mutex_);
  const auto found = lent_.find(id);
  return found != lent_.end() ? found->second.state : State::kNew;
}

// Where that fails, the others do not find it, and say so.
void LentMemory::lend(uint64_t id) {
  const MutexLock guard(mutex_);
  if (lent_.contains(id) && lent_[id].state != State::kNew) {
    return;
  }
  SharedAllocations& allocations = SharedAllocations::instance();
  std::erase_if(lent_, [&](const auto& entry) {
    return allocations.byId(entry.first) == nullptr;
  });
  const auto allocation = allocations.byId(id);
  if (allocation == nullptr) {
    return;
  }
  lent_[id].state = State::kHandedOver;
  try {
    context_.device().factory().sharer()->lend(*allocation, takers_);
  } catch (const IoException& e) {
    GLOO_INFO("rank ", context_.rank(), ": ", allocation->bytes(),
              " bytes of shared memory are used like other memory: ", e.what());
  }
}

void LentMemory::settle(uint64_t id, bool shared) {
  const MutexLock guard(mutex_);
  Lent& lent = lent_[id];
  if (shared) {
    lent.state = State::kShared;
  } else if (lent.state != State::kShared) {
    lent.state =
        ++lent.failures < kMostFailures ? State::kNew : State::kRefused;
  }
}

std::shared_ptr<const SharedAllocation> LentMemory::borrow(uint64_t id,
                                                           bool isNew) {
  const MutexLock guard(mutex_);
  if (const auto found = borrowed_.find(id); found != borrowed_.end()) {
    if (isNew) {
      refuse(id);
    }
    return found->second;
  }
  std::erase_if(borrowed_,
                [](const auto& entry) { return entry.second->freed(); });
  try {
    return borrowed_[id] =
               context_.device().factory().sharer()->borrow(id, token_);
  } catch (const IoException& e) {
    borrowed_.erase(id);
    GLOO_INFO("rank ", context_.rank(),
              ": no access to another rank's shared memory: ", e.what());
    return nullptr;
  }
}

void LentMemory::refuse(uint64_t id) noexcept {
  context_.device().factory().sharer()->refuseLoan(id, token_);
}

// ---- A lane's

LaneMemory::Own& LaneMemory::lookUp(uintptr_t data, size_t bytes,
                                    uint64_t version) {
  for (Own& own : own_) {
    if (own.range.version == version && own.range.holds(data, bytes)) {
      return own;
    }
  }
  Own& own = own_[nextOwn_++ % kOwn];
  own.range = SharedAllocations::instance().find(data);
  own.state = LentMemory::State::kNew;
  return own;
}

Place LaneMemory::placeOf(const void* data, size_t bytes, bool* isNew) {
  using State = LentMemory::State;
  version_ = SharedAllocations::instance().version();
  if (version_ == 0) {
    return {};
  }
  const auto address = reinterpret_cast<uintptr_t>(data);
  Own& own = lookUp(address, bytes, version_);
  if (own.range.id == 0 || !own.range.holds(address, bytes)) {
    return {};
  }
  if (own.state == State::kNew || own.state == State::kHandedOver) {
    own.state = lent_.stateOf(own.range.id);
  }
  if (own.state == State::kRefused) {
    return {};
  }
  *isNew = *isNew || own.state != State::kShared;
  return {own.range.id, address - own.range.begin};
}

void LaneMemory::settle(uint64_t id, bool shared) { lent_.settle(id, shared); }

bool LaneMemory::isWithdrawn(const Place& place, size_t bytes) const {
  SharedAllocations& allocations = SharedAllocations::instance();
  if (allocations.version() == version_) {
    return false;
  }
  const auto allocation = allocations.byId(place.memory);
  return allocation != nullptr && allocation->isPrivate(place.offset, bytes);
}

const SharedAllocation* LaneMemory::find(Borrowed& borrowed, uint64_t id) {
  for (size_t i = 0; i < kBorrowed; i++) {
    const auto& memory = borrowed.memory[i];
    if (memory != nullptr && memory->id() == id) {
      borrowed.last = i;
      return memory.get();
    }
  }
  return nullptr;
}

// Never in the place of the one that was used last: this operation may read
// that, too.
const SharedAllocation* LaneMemory::borrow(Borrowed& borrowed, uint64_t id,
                                           bool isNew) {
  const size_t last = borrowed.last;
  for (size_t i = 0; i < kBorrowed; i++) {
    auto& memory = borrowed.memory[i];
    if (i != last && memory != nullptr && memory->freed()) {
      memory.reset();
    }
  }
  borrowed.last = (last + 1) % kBorrowed;
  auto& entry = borrowed.memory[borrowed.last];
  entry = lent_.borrow(id, isNew);
  return entry.get();
}

char* LaneMemory::map(int rank, const Place& place, size_t bytes, bool isNew) {
  Borrowed& borrowed = borrowed_[static_cast<size_t>(rank)];
  const SharedAllocation* memory = find(borrowed, place.memory);
  if (memory == nullptr) {
    memory = borrow(borrowed, place.memory, isNew);
  } else if (isNew) {
    lent_.refuse(place.memory);
  }
  const bool fits = memory != nullptr && place.offset <= memory->bytes() &&
                    bytes <= memory->bytes() - place.offset;
  return fits ? memory->data() + place.offset : nullptr;
}

}  // namespace transport::base
GLOO_NAMESPACE_END
