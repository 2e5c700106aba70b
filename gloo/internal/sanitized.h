// GLOO_SANITIZED: 1 if a sanitizer watches accesses to memory. It does not see
// those of some instructions, for which there are others then.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GLOO_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GLOO_SANITIZED 1
#endif
#endif
#if !defined(GLOO_SANITIZED)
#define GLOO_SANITIZED 0
#endif
