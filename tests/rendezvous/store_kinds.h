// All stores, for tests that hold for each.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "gloo/rendezvous/store.h"

namespace gloo_test {

// A store that lives as long as this object.
class StoreFixture {
 public:
  virtual ~StoreFixture() = default;
  // Another client of the same contents. May be called in a forked process if
  // sharedByProcesses().
  virtual std::shared_ptr<gloo::rendezvous::Store> open() = 0;
  virtual bool sharedByProcesses() const { return true; }
};

struct StoreKind {
  std::string name;
  std::function<std::unique_ptr<StoreFixture>()> make;
};
inline std::ostream& operator<<(std::ostream& out, const StoreKind& kind) {
  return out << kind.name;
}

std::vector<StoreKind> allStoreKinds();

inline std::vector<char> bytesOf(const std::string& text) {
  return {text.begin(), text.end()};
}

}  // namespace gloo_test
