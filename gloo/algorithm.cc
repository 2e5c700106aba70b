#include "gloo/algorithm.h"

GLOO_NAMESPACE_BEGIN
namespace {

const std::shared_ptr<Context>& required(
    const std::shared_ptr<Context>& context) {
  GLOO_ENFORCE(context != nullptr, "the context of a collective is null");
  return context;
}

}  // namespace

Algorithm::Algorithm(const std::shared_ptr<Context>& context)
    : context_(required(context)),
      contextRank_(context->rank),
      contextSize_(context->size) {}

Algorithm::~Algorithm() noexcept(false) = default;

std::unique_ptr<transport::Pair>& Algorithm::getPair(int i) {
  return context_->getPair(i);
}

std::unique_ptr<transport::Pair>& Algorithm::getLeftPair() {
  return getPair((contextRank_ + contextSize_ - 1) % contextSize_);
}

std::unique_ptr<transport::Pair>& Algorithm::getRightPair() {
  return getPair((contextRank_ + 1) % contextSize_);
}

GLOO_NAMESPACE_END
