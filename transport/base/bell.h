// How threads put themselves and each other to sleep and wake.
#pragma once

#include <atomic>
#include <cstdint>

#include "gloo/common/deadline.h"
#include "gloo/config.h"
#include "transport/base/socket.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// Blocks while `word` is 0, at most until the deadline (futex(2)).
void futexWait(std::atomic<uint32_t>& word, Deadline deadline);
// Makes it 1 and wakes who waits for it.
void futexWake(std::atomic<uint32_t>& word);

// A descriptor that another thread makes readable (eventfd(2)). Throws
// IoException.
UniqueFd makeBell();
void ring(const UniqueFd& bell);
void silence(const UniqueFd& bell);

// Blocks until one of two descriptors (-1: none) is readable.
void waitReadable(int a, int b, Deadline deadline);

}  // namespace transport::base
GLOO_NAMESPACE_END
