#include "transport/auto/factory.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "gloo/common/error.h"
#include "gloo/common/logging.h"
#include "transport/auto/offer.h"

GLOO_NAMESPACE_BEGIN
namespace transport::automatic {
namespace {

using base::Hello;
using base::PendingLink;

// For the links that ranks of one host should have, while there are many of
// them at once. With less there are others.
constexpr std::chrono::seconds kMostPatience{5};
// A caller that was put off calls again within a fraction of a second; one that
// has not for so long does not come any more.
constexpr std::chrono::seconds kForgetAfter{60};

struct Candidate {
  std::string kind;
  std::unique_ptr<PendingLink> pending;
  std::string remedy;  // when it fails after all
};

// The hello as the link of one kind expects it.
Hello forKind(const Hello& hello, const Offer& offer) {
  Hello part = hello;
  part.blob = offer.blob;
  return part;
}

// One end of a pair: the caller's with all that it offers, the called one's
// with what it has chosen.
class AutoPending final : public PendingLink {
 public:
  explicit AutoPending(std::vector<Candidate> candidates)
      : candidates_(std::move(candidates)) {}

  std::vector<char> blob() const override {
    std::vector<Offer> offers;
    for (const Candidate& candidate : candidates_) {
      if (const std::string why = candidate.pending->trouble(); why.empty()) {
        offers.push_back({candidate.kind, candidate.pending->blob()});
      } else {
        GLOO_INFO("no ", candidate.kind, " with this peer: ", why);
      }
    }
    return encode(offers);
  }

  std::unique_ptr<base::Link> complete(base::UniqueFd socket,
                                       const Hello& theirs,
                                       base::LinkHandler& handler) override {
    const std::vector<Offer> offers = decodeOffers(theirs.blob);
    for (Candidate& candidate : candidates_) {
      if (const Offer* offer = find(offers, candidate.kind)) {
        return complete(candidate, std::move(socket), forKind(theirs, *offer),
                        handler);
      }
    }
    GLOO_THROW_IO_EXCEPTION(
        "the peer has chosen none of the links that were offered: it runs"
        " another program or is broken");
  }

 private:
  // The other end goes by the same choice: there is no way back.
  std::unique_ptr<base::Link> complete(Candidate& candidate,
                                       base::UniqueFd socket,
                                       const Hello& theirs,
                                       base::LinkHandler& handler) {
    try {
      auto link =
          candidate.pending->complete(std::move(socket), theirs, handler);
      GLOO_INFO("rank ", theirs.dstRank, ": rank ", theirs.srcRank, " over ",
                link->str());
      return link;
    } catch (const IoException& e) {
      GLOO_THROW_IO_EXCEPTION("over ", candidate.kind, ": ", e.what(),
                              candidate.remedy);
    }
  }

  std::vector<Candidate> candidates_;
};

}  // namespace

AutoFactory::AutoFactory(std::string kind, Factories factories,
                         std::string remedy)
    : kind_(std::move(kind)),
      factories_(std::move(factories)),
      remedy_(std::move(remedy)) {}

base::LinkCaps AutoFactory::caps(int peers) const {
  base::LinkCaps caps = factories_.back()->caps(peers);
  for (const auto& factory : factories_) {
    const base::LinkCaps own = factory->caps(peers);
    caps.eagerBytes = std::min(caps.eagerBytes, own.eagerBytes);
    caps.reportsDeath = caps.reportsDeath && own.reportsDeath;
    caps.needsRegions = caps.needsRegions || own.needsRegions;
    caps.callBytes = std::max(caps.callBytes, own.callBytes);
  }
  return caps;
}

std::vector<std::string> AutoFactory::kinds() const {
  std::vector<std::string> kinds;
  for (const auto& factory : factories_) {
    kinds.push_back(factory->kind());
  }
  return kinds;
}

std::string AutoFactory::remedyFor(const base::LinkFactory& factory) const {
  return &factory == factories_.back().get() ? "" : remedy_;
}

std::unique_ptr<PendingLink> AutoFactory::prepare(int peers) {
  std::vector<Candidate> candidates;
  for (const auto& factory : factories_) {
    candidates.push_back(
        {factory->kind(), factory->prepare(peers), remedyFor(*factory)});
  }
  return std::make_unique<AutoPending>(std::move(candidates));
}

std::unique_ptr<PendingLink> AutoFactory::answer(int peers,
                                                 const Hello& theirs) {
  const std::vector<Offer> offers = decodeOffers(theirs.blob);
  std::string reasons;
  for (const auto& factory : factories_) {
    const Offer* offer = find(offers, factory->kind());
    std::string why = "the caller has none";
    if (offer != nullptr) {
      try {
        auto pending = factory->answer(peers, forKind(theirs, *offer));
        why = pending->trouble();
        if (why.empty()) {
          std::vector<Candidate> chosen;
          chosen.push_back(
              {factory->kind(), std::move(pending), remedyFor(*factory)});
          return std::make_unique<AutoPending>(std::move(chosen));
        }
      } catch (const base::NotNowException& e) {
        if (mayPutOff(theirs)) {
          throw;
        }
        why = e.what();
      } catch (const IoException& e) {
        why = e.what();
      }
    }
    GLOO_INFO("rank ", theirs.dstRank, ": rank ", theirs.srcRank, " not over ",
              factory->kind(), ": ", why);
    reasons += (reasons.empty() ? "" : "; ") + factory->kind() + ": " + why;
  }
  GLOO_THROW_IO_EXCEPTION(reasons);
}

// What should pass and does not is done without: by this caller, in this mesh.
// The next one is shown the same patience.
bool AutoFactory::mayPutOff(const Hello& theirs) {
  const auto now = Deadline::Clock::now();
  std::erase_if(putOff_, [&](const auto& entry) {
    return now >= entry.second.at() + kForgetAfter;
  });
  const CallKey call(theirs.srcNonce, theirs.dstNonce);
  const auto at =
      putOff_.try_emplace(call, Deadline::after(kMostPatience)).first;
  return !at->second.expired();
}

std::unique_ptr<base::Region> AutoFactory::registerMemory(void* ptr,
                                                          size_t bytes,
                                                          base::MemoryKind kind,
                                                          base::Rights rights) {
  if (kind.where == base::MemoryKind::Where::kCuda) {
    return nullptr;  // not all links reach it
  }
  for (const auto& factory : factories_) {
    if (factory->caps(1).needsRegions) {
      return factory->registerMemory(ptr, bytes, kind, rights);
    }
  }
  return nullptr;
}

base::MemorySharer* AutoFactory::sharer() {
  for (const auto& factory : factories_) {
    if (base::MemorySharer* sharer = factory->sharer()) {
      return sharer;
    }
  }
  return nullptr;
}

void AutoFactory::addStatistics(internal::Statistics& total) const {
  for (const auto& factory : factories_) {
    factory->addStatistics(total);
  }
}

}  // namespace transport::automatic
GLOO_NAMESPACE_END
