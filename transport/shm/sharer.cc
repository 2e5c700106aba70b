#include "transport/shm/sharer.h"

#include <cstring>
#include <utility>

#include "gloo/common/error.h"
#include "transport/shm/allocation.h"
#include "transport/shm/local.h"
#include "transport/shm/sealed_memory.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {
namespace {

Secret tokenOf(uint64_t id) {
  Secret token{};
  std::memcpy(token.data(), &id, sizeof(id));
  return token;
}

}  // namespace

base::MemorySharer::Given ShmSharer::give(size_t bytes,
                                          const std::vector<Name>& takers) {
  const Secret token = makeSecret();
  auto memory = std::make_shared<SealedMemory>(bytes);
  for (const Name& taker : takers) {
    handOver(dial(taker), token, memory->descriptor());
  }
  memory->close();
  Local<SealedMemory>::instance().add(token, memory);
  return {std::move(memory), token};
}

// What was handed over is taken in any case, so that nothing is left there.
std::shared_ptr<base::SharedMemory> ShmSharer::take(size_t bytes,
                                                    const Name& token) {
  Handover handover = endpoint_.take(token);
  auto local = Local<SealedMemory>::instance().find(token);
  if (local != nullptr && local->size() == bytes) {
    return local;
  }
  return std::make_shared<SealedMemory>(std::move(handover.memory), bytes);
}

void ShmSharer::lend(const base::SharedAllocation& allocation,
                     const std::vector<Name>& takers) {
  const int descriptor = allocation.descriptor();
  if (descriptor < 0) {
    GLOO_THROW_IO_EXCEPTION("it belongs to the parent of this process");
  }
  for (const Name& taker : takers) {
    handOver(dial(taker), tokenOf(allocation.id()), descriptor);
  }
}

std::shared_ptr<const base::SharedAllocation> ShmSharer::borrow(uint64_t id) {
  return Allocation::borrow(endpoint_.take(tokenOf(id)).memory, id);
}

}  // namespace transport::shm
GLOO_NAMESPACE_END
