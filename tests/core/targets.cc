#include "tests/core/targets.h"

#include <hwy/highway.h>

namespace gloo::testing {
namespace {

void choose(int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace

void forEachTarget(const std::function<void(const std::string&)>& work) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    choose(target);
    work(hwy::TargetName(target));
  }
  choose(0);  // 0: no mock, what the processor supports
}

}  // namespace gloo::testing
