// A barrier as an object.
#pragma once

#include <memory>

#include "gloo/barrier.h"
#include "gloo/config.h"
#include "gloo/internal/persistent.h"

GLOO_NAMESPACE_BEGIN

// All ranks construct their objects on a context in the same order. One thread
// at a time. Errors as for barrier().
class GLOO_API BarrierAllToAll : public Barrier {
 public:
  explicit BarrierAllToAll(const std::shared_ptr<Context>& context);
  ~BarrierAllToAll() noexcept(false) override;

  void run() override;

 private:
  std::unique_ptr<internal::Persistent> persistent_;
};

GLOO_NAMESPACE_END
