#include "transport/auto/factory.h"

#include <algorithm>
#include <utility>

#include "gloo/common/error.h"
#include "gloo/common/logging.h"

GLOO_NAMESPACE_BEGIN
namespace transport::automatic {
namespace {

using base::Hello;
using base::PendingLink;

// One end of a pair. `shm` may be null.
class AutoPending final : public PendingLink {
 public:
  AutoPending(std::unique_ptr<PendingLink> tcp,
              std::unique_ptr<PendingLink> shm)
      : tcp_(std::move(tcp)),
        shm_(std::move(shm)),
        tcpBytes_(tcp_->blob().size()) {}

  std::vector<char> blob() const override {
    std::vector<char> bytes = tcp_->blob();
    if (shm_ != nullptr) {
      const std::vector<char> more = shm_->blob();
      bytes.insert(bytes.end(), more.begin(), more.end());
    }
    return bytes;
  }

  std::unique_ptr<base::Link> complete(base::UniqueFd socket,
                                       const Hello& theirs,
                                       base::LinkHandler& handler) override {
    const Hello second = secondPart(theirs, tcpBytes_);
    auto& chosen = shm_ != nullptr && !second.blob.empty() ? shm_ : tcp_;
    auto link = chosen->complete(std::move(socket),
                                 chosen == shm_ ? second : theirs, handler);
    GLOO_INFO("rank ", theirs.dstRank, ": rank ", theirs.srcRank, " over ",
              link->str());
    return link;
  }

  // The same hello as the shared-memory link would get it.
  static Hello secondPart(const Hello& hello, size_t tcpBytes) {
    Hello part = hello;
    const size_t first = std::min(tcpBytes, part.blob.size());
    part.blob.erase(part.blob.begin(),
                    part.blob.begin() + static_cast<ptrdiff_t>(first));
    return part;
  }

 private:
  const std::unique_ptr<PendingLink> tcp_;
  const std::unique_ptr<PendingLink> shm_;
  const size_t tcpBytes_;
};

}  // namespace

AutoFactory::AutoFactory(base::ProgressDomain& domain, bool shm)
    : tcp_(domain),
      shm_(
          shm ? std::make_unique<shm::ShmFactory>(domain, shm::FactoryOptions{})
              : nullptr) {}

base::LinkCaps AutoFactory::caps() const {
  base::LinkCaps caps = tcp_.caps();
  if (shm_ != nullptr) {
    caps.eagerBytes = std::min(caps.eagerBytes, shm_->caps().eagerBytes);
  }
  return caps;
}

std::unique_ptr<PendingLink> AutoFactory::prepare(int peers) {
  return std::make_unique<AutoPending>(
      tcp_.prepare(peers), shm_ != nullptr ? shm_->prepare(peers) : nullptr);
}

std::unique_ptr<PendingLink> AutoFactory::answer(int peers,
                                                 const Hello& theirs) {
  auto tcp = tcp_.prepare(peers);
  std::unique_ptr<PendingLink> shm;
  const Hello second = AutoPending::secondPart(theirs, tcp->blob().size());
  if (shm_ != nullptr && !second.blob.empty()) {
    try {
      shm = shm_->answer(peers, second);
    } catch (const IoException& e) {
      GLOO_INFO("rank ", theirs.dstRank, ": rank ", theirs.srcRank,
                " over tcp: ", e.what());
    }
  }
  return std::make_unique<AutoPending>(std::move(tcp), std::move(shm));
}

void AutoFactory::addStatistics(internal::Statistics& total) const {
  tcp_.addStatistics(total);
  if (shm_ != nullptr) {
    shm_->addStatistics(total);
  }
}

}  // namespace transport::automatic
GLOO_NAMESPACE_END
