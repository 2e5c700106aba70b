#include "algorithms/reduce_locally.h"

#include <algorithm>

GLOO_NAMESPACE_BEGIN
namespace algorithms {

namespace {

// Chunk by chunk, so that the result so far stays in the cache.
constexpr size_t kChunkBytes = 32 * 1024;

}  // namespace

void reduceLocally(const Reducer& reduce, const internal::Vectors& vectors,
                   void* target, const std::function<void()>& between) {
  if (vectors.size() < 2) {
    return;
  }
  const size_t bytes = vectors[0].bytes;
  const size_t chunk = std::max<size_t>(1, kChunkBytes / reduce.elementSize) *
                       reduce.elementSize;
  const auto at = [](void* data, size_t offset) {
    return static_cast<char*>(data) + offset;
  };
  for (size_t done = 0; done < bytes; done += chunk) {
    const size_t part = std::min(chunk, bytes - done);
    for (size_t i = 1; i < vectors.size(); i++) {
      reduce(at(target, done), at(i == 1 ? vectors[0].data : target, done),
             at(vectors[i].data, done), part);
    }
    if (between) {
      between();
    }
  }
}

}  // namespace algorithms
GLOO_NAMESPACE_END
