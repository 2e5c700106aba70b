// Makes TCP links; see transport/base/link.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gloo/config.h"
#include "transport/base/link.h"
#include "transport/tcp/poller.h"

GLOO_NAMESPACE_BEGIN
namespace transport::tcp {

// Under the domain's lock, its making and its end too.
class TcpFactory final : public base::LinkFactory {
 public:
  // Its links move with the domain. Throws IoException.
  explicit TcpFactory(base::ProgressDomain& domain);
  ~TcpFactory() override;

  std::string kind() const override { return "tcp"; }
  base::LinkCaps caps(int peers) const override;
  // What moves the bytes of all its links.
  TcpPoller& poller() { return poller_; }
  std::unique_ptr<base::PendingLink> prepare(int peers) override;
  void addStatistics(internal::Statistics& total) const override;

 private:
  base::ProgressDomain& domain_;
  base::Origin origin_;
  TcpPoller poller_;
};

// What a link of a context with this many peers offers: the eager memory of a
// device is shared by all of them.
base::LinkCaps capsFor(int peers);

// Our limits, as the peer gets them, and the smaller of both sides'. Throws
// IoException when the bytes are no limits.
std::vector<char> encodeLimits(const base::LinkCaps& caps);
base::LinkCaps agreeLimits(const base::LinkCaps& mine,
                           const std::vector<char>& theirs);

}  // namespace transport::tcp
GLOO_NAMESPACE_END
