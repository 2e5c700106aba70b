#include "rendezvous/claims.h"

#include <memory>
#include <mutex>
#include <set>

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

namespace {

// Leaked on purpose: contexts may be connected during static destruction.
struct Claims {
  std::mutex mutex;
  std::multiset<uint64_t> held;
};

Claims& claims() {
  static Claims* const all = std::make_unique<Claims>().release();
  return *all;
}

}  // namespace

Claim::Claim(uint64_t nonce) : nonce_(nonce) {
  std::lock_guard lock(claims().mutex);
  claims().held.insert(nonce_);
}

Claim::~Claim() {
  std::lock_guard lock(claims().mutex);
  claims().held.erase(claims().held.find(nonce_));
}

bool Claim::isHeld(uint64_t nonce) {
  std::lock_guard lock(claims().mutex);
  return claims().held.count(nonce) != 0;
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
