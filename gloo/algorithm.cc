#include "gloo/algorithm.h"

GLOO_NAMESPACE_BEGIN

Algorithm::Algorithm(const std::shared_ptr<Context>& context)
    : context_(context),
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
