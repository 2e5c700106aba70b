// The kernels of each family of types, for the processor that this runs on.
// Null: not of the family, or no such reduction.
#pragma once

#include "gloo/config.h"
#include "gloo/internal/kernels.h"

GLOO_NAMESPACE_BEGIN
namespace reductions {

using internal::DivideKernel;
using internal::ElementType;
using internal::ExchangeKernel;
using internal::Kernel;
using internal::Reduction;

Kernel findIntegerKernel(ElementType type, Reduction reduction);
Kernel findFloatKernel(ElementType type, Reduction reduction);  // and complex
Kernel findFloat16Kernel(ElementType type, Reduction reduction);
Kernel findBfloat16Kernel(ElementType type, Reduction reduction);

DivideKernel findFloatDivide(ElementType type);  // and complex
DivideKernel findFloat16Divide(ElementType type);
DivideKernel findBfloat16Divide(ElementType type);

ExchangeKernel findExchange();

}  // namespace reductions
GLOO_NAMESPACE_END
