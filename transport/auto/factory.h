// Makes a link of the best kind that both ends can have: shared memory, else
// TCP.
//
// The hellos carry what TCP needs, followed by what shared memory needs, so
// that an end that knows only TCP finds what it expects. The called end
// decides: it tries to hand over a segment, which works on one host only; if it
// could, its answer has a second part.
#pragma once

#include <memory>
#include <string>

#include "gloo/config.h"
#include "transport/base/link.h"
#include "transport/shm/factory.h"
#include "transport/tcp/factory.h"

GLOO_NAMESPACE_BEGIN
namespace transport::automatic {

// Under the domain's lock, its making and its end too.
class AutoFactory final : public base::LinkFactory {
 public:
  // Without `shm`: TCP only. Throws IoException.
  AutoFactory(base::ProgressDomain& domain, bool shm);

  std::string kind() const override { return "auto"; }
  // What a link of any kind offers at least.
  base::LinkCaps caps() const override;
  std::unique_ptr<base::PendingLink> prepare(int peers) override;
  std::unique_ptr<base::PendingLink> answer(int peers,
                                            const base::Hello& theirs) override;
  bool mayShare() const override { return true; }
  base::MemorySharer* sharer() override {
    return shm_ != nullptr ? shm_->sharer() : nullptr;
  }
  void addStatistics(internal::Statistics& total) const override;

 private:
  tcp::TcpFactory tcp_;
  std::unique_ptr<shm::ShmFactory> shm_;  // null: not wanted
};

}  // namespace transport::automatic
GLOO_NAMESPACE_END
