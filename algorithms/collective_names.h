// The catalogue's collectives by name, for what people write.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// Each once, in the order of the catalogue.
std::vector<Collective> collectives();

// Nothing if there is none of that name.
std::optional<Collective> findCollective(std::string_view name);

// "there is no collective 'x'; there are allreduce, ...": for errors.
std::string noCollective(std::string_view name);

}  // namespace algorithms
GLOO_NAMESPACE_END
