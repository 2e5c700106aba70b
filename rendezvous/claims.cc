#include "rendezvous/claims.h"

#include <mutex>
#include <set>

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

namespace {

struct Claims {
  std::mutex mutex;
  std::multiset<uint64_t> held;
};

// Contexts may be connected during static destruction, and in forked children.
Claims& claims() { return internal::instanceOfProcess<Claims>(); }

}  // namespace

Claim::Claim(uint64_t nonce) : nonce_(nonce) {
  std::lock_guard lock(claims().mutex);
  claims().held.insert(nonce_);
}

Claim::~Claim() {
  if (!origin_.inherited()) {
    std::lock_guard lock(claims().mutex);
    claims().held.erase(claims().held.find(nonce_));
  }
}

bool Claim::isHeld(uint64_t nonce) {
  std::lock_guard lock(claims().mutex);
  return claims().held.count(nonce) != 0;
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
