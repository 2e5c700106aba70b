// Makes links over one RDMA port; see transport/base/link.h. Under the domain's
// lock, its making and its end too.
#pragma once

#include <memory>
#include <string>

#include "gloo/config.h"
#include "transport/base/fork.h"
#include "transport/base/link.h"
#include "transport/ibverbs/poller.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {

class VerbsFactory final : public base::LinkFactory {
 public:
  // `poller` is opened already.
  VerbsFactory(base::ProgressDomain& domain,
               std::unique_ptr<VerbsPoller> poller);
  ~VerbsFactory() override;

  std::string kind() const override { return "ibverbs"; }
  base::LinkCaps caps(int peers) const override;
  std::unique_ptr<base::PendingLink> prepare(int peers) override;
  // Connects the queue pair at once: whether there is a way to the peer's
  // port is known before the call is answered.
  std::unique_ptr<base::PendingLink> answer(int peers,
                                            const base::Hello& theirs) override;
  std::unique_ptr<base::Region> registerMemory(void* ptr, size_t bytes,
                                               base::MemoryKind kind,
                                               base::Rights rights) override;
  void addStatistics(internal::Statistics& total) const override;

 private:
  base::ProgressDomain& domain_;
  base::Origin origin_;
  std::unique_ptr<VerbsPoller> poller_;
};

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
