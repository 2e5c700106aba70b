#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "algorithms/action_stream.h"
#include "algorithms/hazards.h"
#include "algorithms/program.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// Finds out what each action has to wait for.
class Expander {
 public:
  Program run(ActionStream stream) {
    program_.window = stream.window();
    program_.stageBytes = stream.stageBytes();
    program_.scratchBytes = stream.scratchBytes();
    for (Action action; stream.next(action);) {
      add(action);
    }
    return std::move(program_);
  }

 private:
  void add(Action action) {
    const uint32_t index = static_cast<uint32_t>(program_.actions.size());
    waits_.clear();
    if (action.kind != ActionKind::kRecv) {
      hazards_.read(index, action.source, action.bytes, waits_);
    }
    if (action.kind == ActionKind::kReduce) {
      hazards_.read(index, action.staged, action.bytes, waits_);
    }
    if (action.kind != ActionKind::kSend) {
      hazards_.write(index, action.target, action.bytes, waits_);
    }
    std::sort(waits_.begin(), waits_.end());
    waits_.erase(std::unique(waits_.begin(), waits_.end()), waits_.end());
    action.firstWait = static_cast<uint32_t>(program_.waits.size());
    action.waitCount = static_cast<uint32_t>(waits_.size());
    program_.waits.insert(program_.waits.end(), waits_.begin(), waits_.end());
    chain(action, index);
    program_.actions.push_back(action);
  }

  void chain(Action& action, uint32_t index) {
    const bool sends = action.kind == ActionKind::kSend;
    if (!sends && action.kind != ActionKind::kRecv) {
      return;
    }
    const size_t at = 2 * static_cast<size_t>(action.peer) + (sends ? 1 : 0);
    if (at >= last_.size()) {
      last_.resize(at + 1, -1);
    }
    action.after = std::exchange(last_[at], static_cast<int32_t>(index));
    (sends ? program_.sendBytes : program_.recvBytes) += action.bytes;
  }

  Program program_;
  Hazards hazards_;
  std::vector<uint32_t> waits_;  // of the action that is added
  std::vector<int32_t> last_;    // by peer: the last receive, the last send
};

}  // namespace

bool postsFirst(const Program& program) {
  const auto& actions = program.actions;
  const size_t inView =
      std::min(actions.size(), static_cast<size_t>(program.window));
  const auto end = actions.begin() + static_cast<std::ptrdiff_t>(inView);
  return (inView > 0 && actions[0].kind == ActionKind::kSend) ||
         std::any_of(actions.begin(), end, [](const Action& a) {
           return a.kind == ActionKind::kRecv && a.waitCount == 0 &&
                  a.after < 0;
         });
}

Program expandSteps(const std::vector<Step>& steps, const Layouts& layouts,
                    const ExpandOptions& options) {
  return Expander().run(ActionStream(Steps(steps), layouts, options));
}

Program expand(const Schedule& schedule, const Layouts& layouts,
               const ExpandOptions& options) {
  return Expander().run(ActionStream(Steps(schedule), layouts, options));
}

}  // namespace algorithms
GLOO_NAMESPACE_END
