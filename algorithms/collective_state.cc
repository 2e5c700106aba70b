// What the core knows of the collectives' state.
#include "gloo/internal/collective_state.h"

#include "algorithms/direct_sizes.h"
#include "algorithms/state.h"
#include "gloo/context.h"
#include "gloo/internal/algorithms.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

CollectiveState::~CollectiveState() = default;

std::shared_ptr<CollectiveState> CollectiveState::make(
    transport::Context& context) {
  auto profile = profileOf(context);
  if (profile == nullptr) {
    profile = std::make_shared<const Profile>();
  }
  Channel& channel = Channel::of(context);
  std::string transport = transportOf(context);
  // A TCP device has shared memory's links between ranks that all share it.
  if (transport == "tcp" && channel.direct() != nullptr) {
    transport = "shm";
  }
  return std::make_shared<algorithms::State>(channel, *profile, transport);
}

std::vector<AlgorithmNames> algorithmNames(Context& context) {
  algorithms::State& state = algorithms::State::of(context);
  const algorithms::Setting setting{0, context.size, 0, context.base,
                                    state.selection().hosts()};
  const bool shares = state.channel().direct() != nullptr;
  std::vector<AlgorithmNames> all;
  for (const algorithms::AlgorithmInfo& info : algorithms::catalogue()) {
    const std::string collective(nameOf(info.collective));
    if (all.empty() || all.back().collective != collective) {
      all.push_back(
          {collective, {}, shares && algorithms::hasDirect(info.collective)});
    }
    if (info.offers(setting) && !info.byNameOnly) {
      all.back().algorithms.emplace_back(info.name);
    }
  }
  return all;
}

}  // namespace internal

GLOO_NAMESPACE_END
