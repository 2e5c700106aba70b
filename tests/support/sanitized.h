// Whether this is a build under the address or thread sanitizer; gcc and clang
// say so in different ways.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define GLOO_TEST_THREAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GLOO_TEST_THREAD_SANITIZED 1
#endif
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(GLOO_TEST_THREAD_SANITIZED)
#define GLOO_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GLOO_TEST_SANITIZED 1
#endif
#endif
