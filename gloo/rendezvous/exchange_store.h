// A store for ranks that can exchange bytes already: by MPI, over an existing
// mesh, or through a launcher of their own.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "gloo/rendezvous/hash_store.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// For one connectFullMesh(), and not through a PrefixStore. The first set(), of
// this rank's record, exchanges it for all ranks' records; they do not change
// afterwards: every rank that takes part in an exchange is alive and knows who
// it is. Thread-safe.
class GLOO_API ExchangeStore : public HashStore {
 public:
  // An allgather: gives this rank's value, of a few hundred bytes, which may
  // be of another length on each rank, and returns all ranks' values by rank.
  // Called once, by a thread in connectFullMesh(), on all ranks. What it throws
  // goes to the caller of that.
  using Exchange = std::function<std::vector<std::vector<char>>(
      const std::vector<char>& mine)>;

  explicit ExchangeStore(Exchange exchange);
  ~ExchangeStore() override;

  void set(const std::string& key, const std::vector<char>& data) override;
  std::string str() const override { return "exchange between the ranks"; }

 private:
  const Exchange exchange_;
  std::once_flag exchanged_;
};

}  // namespace rendezvous
GLOO_NAMESPACE_END
