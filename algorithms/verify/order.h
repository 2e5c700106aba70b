// Which actions of one rank may start, by the executor's rules: told one by one
// as others start and end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "algorithms/program.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::verify {

// An action may start when it is in the window, what it waits for is done, and
// the message before it to the same peer has started. `onePort`: a message also
// when all before it in its direction are done. Borrows the program.
class Order {
 public:
  Order(const Program& program, bool onePort);

  // These append the actions that may start from now on; each does so once.
  void begin(std::vector<uint32_t>& ready);
  void started(uint32_t action, std::vector<uint32_t>& ready);
  // `depth`: messages in the longest chain that ends with it.
  void done(uint32_t action, int depth, std::vector<uint32_t>& ready);

  // The depth of the deepest of those that the action has waited for.
  int depthBefore(uint32_t action) const { return states_[action].depth; }

  // The first action that is not done.
  size_t head() const { return head_; }
  bool atEnd() const { return head_ == program_.actions.size(); }

  static bool isMessage(const Action& a) {
    return a.kind == ActionKind::kSend || a.kind == ActionKind::kRecv;
  }
  // Of a message.
  static size_t portOf(const Action& a) {
    return a.kind == ActionKind::kSend ? 0 : 1;
  }

 private:
  // Messages in one direction, of which one is under way at a time.
  struct Port {
    std::vector<uint32_t> messages;
    size_t next = 0;
    bool busy = false;
  };

  static constexpr uint32_t kDone = UINT32_MAX;
  struct State {
    uint32_t unmet = 0;  // conditions; kDone: it is
    int depth = 0;       // before it
  };

  template <typename Visit>
  void forEachCondition(const Visit& visit) const;
  template <typename Tell>
  void meet(uint32_t action, bool start, const Tell& tell,
            std::vector<uint32_t>& ready);
  void consider(uint32_t action, std::vector<uint32_t>& ready);
  void enter(std::vector<uint32_t>& ready);

  const Program& program_;
  const bool onePort_;
  size_t head_ = 0;
  size_t entered_ = 0;         // the window's end
  std::vector<State> states_;  // of each action
  // Actions that wait for each: twice their number, plus one if for its start.
  std::vector<uint32_t> firstWaiter_;
  std::vector<uint32_t> waiters_;
  std::array<Port, 2> ports_;
};

}  // namespace algorithms::verify
GLOO_NAMESPACE_END
