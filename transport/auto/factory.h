// Makes a link of the best kind that both ends can have.
//
// The caller's hello offers all kinds that it has (offer.h). The called end
// decides: it takes the first kind, in its own order, of which it can make a
// link with what the caller has sent, and answers with that kind alone.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gloo/common/deadline.h"
#include "gloo/config.h"
#include "transport/base/link.h"

GLOO_NAMESPACE_BEGIN
namespace transport::automatic {

// Under the domain's lock, its making and its end too.
class AutoFactory final : public base::LinkFactory {
 public:
  using Factories = std::vector<std::unique_ptr<base::LinkFactory>>;

  // `kind` is this factory's, for peers and people. `factories`: the best
  // first; the last one makes links with anybody. `remedy` ends the text
  // of an error of the better ones: how to do without them.
  AutoFactory(std::string kind, Factories factories, std::string remedy);

  std::string kind() const override { return kind_; }
  std::vector<std::string> kinds() const override;
  // What a link of any kind offers at least, and needs at most.
  base::LinkCaps caps(int peers) const override;
  std::unique_ptr<base::PendingLink> prepare(int peers) override;
  std::unique_ptr<base::PendingLink> answer(int peers,
                                            const base::Hello& theirs) override;
  std::unique_ptr<base::Region> registerMemory(void* ptr, size_t bytes,
                                               base::MemoryKind kind,
                                               base::Rights rights) override;
  bool mayShare() const override { return true; }
  base::MemorySharer* sharer() override;
  void addStatistics(internal::Statistics& total) const override;

 private:
  std::string remedyFor(const base::LinkFactory& factory) const;
  // Both ends' nonces, which are new with each mesh.
  using CallKey = std::pair<uint64_t, uint64_t>;
  bool mayPutOff(const base::Hello& theirs);

  const std::string kind_;
  const Factories factories_;
  const std::string remedy_;
  // Until when those who were put off are told to come again.
  std::map<CallKey, Deadline> putOff_;
};

}  // namespace transport::automatic
GLOO_NAMESPACE_END
