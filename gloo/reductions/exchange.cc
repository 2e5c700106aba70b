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

void moveInAndOut(uint8_t* out, uint8_t* place, const uint8_t* in,
                  size_t bytes) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  for (; i + lanes <= bytes; i += lanes) {
    const auto old = hn::LoadU(d, place + i);
    const auto fresh = hn::LoadU(d, in + i);
    hn::StoreU(old, d, out + i);
    hn::StoreU(fresh, d, place + i);
  }
#endif
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
  HWY_DYNAMIC_DISPATCH(moveInAndOut)
  (reinterpret_cast<uint8_t*>(out), reinterpret_cast<uint8_t*>(place),
   reinterpret_cast<const uint8_t*>(in), bytes);
}

}  // namespace reductions
GLOO_NAMESPACE_END
#endif
