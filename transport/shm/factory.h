// Makes shared-memory links; see transport/base/link.h.
#pragma once

#include <memory>
#include <string>

#include "gloo/config.h"
#include "transport/base/link.h"
#include "transport/shm/endpoint.h"
#include "transport/shm/greeting.h"
#include "transport/shm/poller.h"
#include "transport/shm/process_memory.h"
#include "transport/shm/sharer.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

struct FactoryOptions {
  // Read large messages straight from the peer's memory where that is allowed.
  // False, or GLOO_SHM_SINGLE_COPY=0: never.
  bool singleCopy = true;
};

// Under the domain's lock, its making and its end too.
class ShmFactory final : public base::LinkFactory {
 public:
  // Its links move with the domain. Throws IoException.
  ShmFactory(base::ProgressDomain& domain, const FactoryOptions& options);
  ~ShmFactory() override;

  std::string kind() const override { return "shm"; }
  base::LinkCaps caps(int peers) const override;
  std::unique_ptr<base::PendingLink> prepare(int peers) override;
  std::unique_ptr<base::PendingLink> answer(int peers,
                                            const base::Hello& theirs) override;
  bool mayShare() const override { return true; }
  base::MemorySharer* sharer() override { return &sharer_; }
  void addStatistics(internal::Statistics& total) const override;

  // ---- For pending links. ----

  ShmPoller& poller() { return poller_; }
  Endpoint& endpoint() { return endpoint_; }
  // What all hellos of this device have in common.
  Greeting greeting(int peers) const;
  // Whether the memory of the process that sent this can be read.
  ProcessMemory probe(pid_t pid, const Greeting& theirs) const;

 private:
  base::ProgressDomain& domain_;
  const bool singleCopy_;
  const uint64_t hostId_;
  base::Origin origin_;
  Endpoint endpoint_;
  const std::unique_ptr<const Secret> probe_;  // read by peers
  ShmPoller poller_;
  ShmSharer sharer_;
};

}  // namespace transport::shm
GLOO_NAMESPACE_END
