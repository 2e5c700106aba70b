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

void exchange(char* out, char* place, const char* in, size_t bytes) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  for (; i + lanes <= bytes; i += lanes) {
    auto* const at = reinterpret_cast<uint8_t*>(place + i);
    const auto old = hn::LoadU(d, at);
    const auto fresh = hn::LoadU(d, reinterpret_cast<const uint8_t*>(in + i));
    hn::StoreU(old, d, reinterpret_cast<uint8_t*>(out + i));
    hn::StoreU(fresh, d, at);
  }
#endif
  if (i < bytes) {
    std::memcpy(out + i, place + i, bytes - i);
    std::memcpy(place + i, in + i, bytes - i);
  }
}

ExchangeKernel find() { return &exchange; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace reductions
GLOO_NAMESPACE_END
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
GLOO_NAMESPACE_BEGIN
namespace reductions {

HWY_EXPORT(find);

ExchangeKernel findExchange() { return HWY_DYNAMIC_DISPATCH(find)(); }

}  // namespace reductions
GLOO_NAMESPACE_END
#endif
