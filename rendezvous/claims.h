// The addresses that threads of this process are connecting right now.
#pragma once

#include <cstdint>

#include "gloo/config.h"
#include "gloo/internal/fork.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// Held while a context is being connected, in this process. Thread-safe.
class Claim {
 public:
  explicit Claim(uint64_t nonce);
  ~Claim();
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  static bool isHeld(uint64_t nonce);

 private:
  const uint64_t nonce_;
  const internal::Origin origin_;
};

}  // namespace rendezvous
GLOO_NAMESPACE_END
