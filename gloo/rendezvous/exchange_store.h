// A store for ranks that can exchange bytes already: by MPI, over an existing
// mesh, or through a launcher of their own.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "gloo/rendezvous/hash_store.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// For one connectFullMesh(); nothing else can be done with it. There the first
// set(), of this rank's record, exchanges it for all ranks' records; they do
// not change afterwards: every rank that takes part in an exchange is alive and
// knows who it is. The context's timeout begins once that is done. May be
// behind a PrefixStore. Thread-safe.
class GLOO_API ExchangeStore : public HashStore {
 public:
  // What a rank gives at most. Mostly less than 500 bytes; rank 0 gives more
  // where it was told of a tuning file. Of another length on each rank.
  static constexpr size_t kMaxBytes = (size_t{64} << 10) + 512;

  // An allgather: gives this rank's value, and returns all ranks' values by
  // rank. Called once, by the thread in connectFullMesh(), on all ranks; may
  // wait for the last of them as long as it likes. If it throws, that fails,
  // with a RendezvousException that has the text (an InvalidOperationException
  // as it is).
  using Exchange = std::function<std::vector<std::vector<char>>(
      const std::vector<char>& mine)>;

  explicit ExchangeStore(Exchange exchange);
  ~ExchangeStore() override;

  void set(const std::string& key, const std::vector<char>& data) override;
  bool waits_for_all() const override { return true; }
  std::string str() const override { return "exchange between the ranks"; }

 private:
  void exchange(const std::string& key, const std::vector<char>& data);
  [[noreturn]] void throwFailed() const;

  const Exchange exchange_;
  std::once_flag exchanged_;
  std::exception_ptr error_;  // of the exchange
  uint64_t nonce_ = 0;        // of who is being connected
};

}  // namespace rendezvous
GLOO_NAMESPACE_END
