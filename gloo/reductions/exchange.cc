// Moves bytes, with the vectors of the processor that this runs on.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gloo/reductions/exchange.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

#include "gloo/reductions/find.h"

HWY_BEFORE_NAMESPACE();
GLOO_NAMESPACE_BEGIN
namespace reductions {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

void moveInAndOut(char* out, char* place, const char* in, size_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  const auto load = [d](const char* from) {
    return hn::LoadU(d, reinterpret_cast<const uint8_t*>(from));
  };
  const auto store = [d](const auto& vector, char* to) {
    hn::StoreU(vector, d, reinterpret_cast<uint8_t*>(to));
  };
  size_t i = 0;
  for (; i + lanes <= bytes; i += lanes) {
    const auto old = load(place + i);
    const auto fresh = load(in + i);
    store(old, out + i);
    store(fresh, place + i);
  }
  if (i < bytes) {
    std::memcpy(out + i, place + i, bytes - i);
    std::memcpy(place + i, in + i, bytes - i);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace reductions
GLOO_NAMESPACE_END
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
GLOO_NAMESPACE_BEGIN
namespace reductions {

HWY_EXPORT(moveInAndOut);

void exchange(char* out, char* place, const char* in, size_t bytes) {
  HWY_DYNAMIC_DISPATCH(moveInAndOut)(out, place, in, bytes);
}

}  // namespace reductions
GLOO_NAMESPACE_END
#endif
