#include "algorithms/collective_names.h"

#include "gloo/common/string.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

std::vector<Collective> collectives() {
  std::vector<Collective> all;
  for (const AlgorithmInfo& info : catalogue()) {
    if (all.empty() || all.back() != info.collective) {
      all.push_back(info.collective);
    }
  }
  return all;
}

std::optional<Collective> findCollective(std::string_view name) {
  for (const Collective collective : collectives()) {
    if (nameOf(collective) == name) {
      return collective;
    }
  }
  return std::nullopt;
}

std::string noCollective(std::string_view name) {
  std::string names;
  for (const Collective collective : collectives()) {
    names += names.empty() ? "" : ", ";
    names += nameOf(collective);
  }
  return MakeString("there is no collective '", name, "'; there are ", names);
}

}  // namespace algorithms
GLOO_NAMESPACE_END
