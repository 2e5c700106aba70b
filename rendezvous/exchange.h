// All ranks' values over a mesh that is connected already.
#pragma once

#include <chrono>
#include <vector>

#include "gloo/common/deadline.h"
#include "gloo/config.h"
#include "gloo/context.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// Every rank passes a value, of any length, and gets all ranks' values, by
// rank. Takes log2(size) messages twice: once for the lengths, once for the
// bytes (Bruck et al., IEEE TPDS 8, 1997). All ranks call it, in the same
// order with respect to Context::nextSlot(). Throws IoException.
std::vector<std::vector<char>> exchangeAll(::gloo::Context& context,
                                           const std::vector<char>& mine,
                                           Deadline deadline);

}  // namespace rendezvous
GLOO_NAMESPACE_END
