#include "gloo/types.h"

GLOO_NAMESPACE_BEGIN
namespace half_detail {
namespace {

constexpr uint32_t kSign = 0x80000000;
constexpr uint32_t kFloatInfinity = 0x7f800000;
constexpr uint32_t kHalfOverflow = (127 + 16) << 23;   // 2^16
constexpr uint32_t kHalfMinNormal = (127 - 14) << 23;  // 2^-14
// 0.5: adding it to a number below 2^-14 leaves, in the last bits of the sum,
// that number in units of 2^-24, the float16 subnormals, correctly rounded.
constexpr uint32_t kSubnormalMagic = (127 - 1) << 23;

}  // namespace

uint16_t float16FromFloat(float value) {
  const uint32_t all = bitsOf(value);
  const uint32_t sign = (all & kSign) >> 16;
  const uint32_t bits = all & ~kSign;
  uint32_t half;
  if (bits > kFloatInfinity) {
    half = 0x7e00 | ((bits >> 13) & 0x3ff);  // quiet, as vcvtps2ph does
  } else if (bits >= kHalfOverflow) {
    half = 0x7c00;
  } else if (bits < kHalfMinNormal) {
    half = bitsOf(floatOf(bits) + floatOf(kSubnormalMagic)) - kSubnormalMagic;
  } else {
    // A carry out of the mantissa increments the exponent, up to infinity.
    half = (bits - ((127 - 15) << 23) + 0xfff + ((bits >> 13) & 1)) >> 13;
  }
  return static_cast<uint16_t>(sign | half);
}

float floatFromFloat16(uint16_t half) {
  const uint32_t sign = (uint32_t{half} & 0x8000) << 16;
  const uint32_t magnitude = half & 0x7fff;
  if (magnitude >= 0x7c00) {
    const uint32_t quiet = magnitude > 0x7c00 ? 0x400000 : 0;
    return floatOf(sign | kFloatInfinity | (magnitude << 13) | quiet);
  }
  if (magnitude < 0x400) {
    const float value =
        floatOf(kSubnormalMagic + magnitude) - floatOf(kSubnormalMagic);
    return floatOf(sign | bitsOf(value));
  }
  return floatOf(sign | ((magnitude << 13) + ((127 - 15) << 23)));
}

uint16_t bfloat16FromFloat(float value) {
  const uint32_t bits = bitsOf(value);
  if ((bits & ~kSign) > kFloatInfinity) {
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  }
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace half_detail
GLOO_NAMESPACE_END
