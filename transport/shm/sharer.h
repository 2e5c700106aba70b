// Gives memory to several processes of this host, by their endpoints.
#pragma once

#include <memory>
#include <vector>

#include "gloo/config.h"
#include "transport/base/link.h"
#include "transport/base/progress.h"
#include "transport/shm/endpoint.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

class ShmSharer final : public base::MemorySharer {
 public:
  // Borrows both; the endpoint is under the domain's lock.
  ShmSharer(base::ProgressDomain& domain, Endpoint& endpoint)
      : domain_(domain), endpoint_(endpoint) {}

  Name name() const override { return endpoint_.name(); }
  Name makeToken() override { return makeSecret(); }
  std::shared_ptr<base::SharedMemory> give(const std::vector<Plan>& plans,
                                           const std::vector<Taker>& takers,
                                           size_t* chosen) override;
  std::shared_ptr<base::SharedMemory> take(size_t bytes,
                                           const Name& token) override;
  void refuse(const Name& token) noexcept override;
  void lend(const base::SharedAllocation& allocation,
            const std::vector<Taker>& takers) override;
  std::shared_ptr<const base::SharedAllocation> borrow(
      uint64_t id, const Name& token) override;
  void refuseLoan(uint64_t id, const Name& token) noexcept override;
  void refuseLoans(const Name& token) noexcept override;

 private:
  Handover taken(const Secret& token);

  base::ProgressDomain& domain_;
  Endpoint& endpoint_;
};

}  // namespace transport::shm
GLOO_NAMESPACE_END
