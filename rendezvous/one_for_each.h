// What stores that callers wrote return, before anybody counts on it.
#pragma once

#include <string>
#include <vector>

#include "gloo/common/error.h"
#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// `values`; IoException unless there is one for each of these keys.
template <typename Value>
std::vector<Value> oneForEach(const std::vector<std::string>& keys,
                              std::vector<Value> values) {
  if (values.size() != keys.size()) {
    throw IoException(MakeString("the store returned ", values.size(),
                                 " values for ", keys.size(), " keys"));
  }
  return values;
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
