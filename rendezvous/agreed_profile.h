// Rank 0's profile, unless this rank's environment contradicts it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gloo/config.h"
#include "gloo/internal/profile.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// The profile that rank 0 has serialized. *disagreement becomes the first
// variable that `wanted` sets to another value, with both; or empty. Throws
// RendezvousException when the bytes are no profile.
std::shared_ptr<internal::Profile> agreeOnProfile(
    const internal::Profile& wanted, const std::vector<char>& serialized,
    std::string* disagreement);

}  // namespace rendezvous
GLOO_NAMESPACE_END
