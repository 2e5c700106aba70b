#include "transport/shm/sharer.h"

#include <utility>

#include "transport/shm/local.h"
#include "transport/shm/sealed_memory.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

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
  if (auto local = Local<SealedMemory>::instance().find(token)) {
    return local;
  }
  return std::make_shared<SealedMemory>(std::move(handover.memory), bytes);
}

}  // namespace transport::shm
GLOO_NAMESPACE_END
