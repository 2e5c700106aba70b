#include "transport/ibverbs/factory.h"

#include <utility>

#include "gloo/common/error.h"
#include "transport/ibverbs/endpoint.h"
#include "transport/ibverbs/link.h"
#include "transport/ibverbs/memory_region.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {
namespace {

// The peer has its link already: it would take our silence for our death.
void explain(SideChannel& side, const base::Hello& theirs, const char* why) {
  internal::Cause cause;
  cause.kind = internal::Cause::Kind::kIo;
  cause.foundBy = theirs.dstRank;
  cause.culprit = theirs.srcRank;
  cause.text =
      MakeString("cannot make a link to rank ", theirs.srcRank, ": ", why)
          .substr(0, internal::Cause::kMaxText);
  const std::vector<char> text = base::encode(cause);
  base::FrameHeader header;
  header.type = base::FrameType::kAbort;
  header.payloadBytes = static_cast<uint32_t>(text.size());
  side.sayReady();
  side.sayLast(header, text.data());
}

class VerbsPending final : public base::PendingLink {
 public:
  // What the device refuses is told by complete(): a hello must be answered.
  // `theirs`: the hello of the peer that has called; null: this side calls.
  VerbsPending(VerbsPoller& poller, int peers, const base::Hello* theirs)
      : poller_(poller) {
    try {
      auto endpoint =
          std::make_unique<Endpoint>(poller, shapeFor(poller.adapter(), peers));
      if (theirs != nullptr) {
        connect(*endpoint, *theirs);
      }
      endpoint_ = std::move(endpoint);
    } catch (const IoException& e) {
      error_ = e.what();
    }
  }

  std::vector<char> blob() const override {
    return endpoint_ != nullptr ? encode(endpoint_->address())
                                : std::vector<char>();
  }

  std::unique_ptr<base::Link> complete(base::UniqueFd socket,
                                       const base::Hello& theirs,
                                       base::LinkHandler& handler) override {
    if (endpoint_ == nullptr) {
      throw IoException(error_);
    }
    SideChannel side(std::move(socket),
                     poller_.adapter().settings().hostTimeout);
    try {
      if (peerReceives_ == 0) {
        connect(*endpoint_, theirs);
      }
      // It may have changed since the hello; later changes the poller tells.
      endpoint_->requireAddress();
      poller_.watchSocket(endpoint_->place(), side.fd());
    } catch (const Exception& e) {
      explain(side, theirs, e.what());
      throw;
    }
    return std::make_unique<VerbsLink>(poller_, std::move(endpoint_),
                                       std::move(side), peerReceives_, handler);
  }

  std::string trouble() const override { return error_; }

 private:
  void connect(Endpoint& endpoint, const base::Hello& theirs) {
    const QpAddress peer = decodeQpAddress(theirs.blob);
    endpoint.connect(peer);
    peerReceives_ = peer.receives;
  }

  VerbsPoller& poller_;
  std::unique_ptr<Endpoint> endpoint_;
  uint32_t peerReceives_ = 0;  // 0: not connected yet
  std::string error_;
};

}  // namespace

VerbsFactory::VerbsFactory(base::ProgressDomain& domain,
                           std::unique_ptr<VerbsPoller> poller)
    : domain_(domain), poller_(std::move(poller)) {
  domain_.add(*poller_);
}

VerbsFactory::~VerbsFactory() {
  if (!origin_.inherited()) {
    domain_.remove(*poller_);
  }
}

base::LinkCaps VerbsFactory::caps(int peers) const {
  return shapeFor(poller_->adapter(), peers).caps;
}

std::unique_ptr<base::PendingLink> VerbsFactory::prepare(int peers) {
  return std::make_unique<VerbsPending>(*poller_, peers, nullptr);
}

std::unique_ptr<base::PendingLink> VerbsFactory::answer(
    int peers, const base::Hello& theirs) {
  return std::make_unique<VerbsPending>(*poller_, peers, &theirs);
}

std::unique_ptr<base::Region> VerbsFactory::registerMemory(
    void* ptr, size_t bytes, base::MemoryKind kind, base::Rights rights) {
  return std::make_unique<MemoryRegion>(poller_->adapter().pd(), ptr, bytes,
                                        rights, kind);
}

void VerbsFactory::addStatistics(internal::Statistics& total) const {
  total += poller_->totals();
}

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
