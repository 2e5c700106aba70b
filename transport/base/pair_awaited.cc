// Ranks that disagree about a collective may all wait, each for one that sends
// nothing, and no message contradicts. So who has waited for long tells the
// sender what for.
#include "transport/base/context.h"
#include "transport/base/pair.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

void Pair::tellAwaited(const Operation& op) {
  auto* entry = static_cast<RecvEntry*>(op.owner);
  if (entry->told || entry->advertised || link_ == nullptr || byeSent_ ||
      departed_ || failed_) {
    return;
  }
  entry->told = true;
  FrameHeader h = header(FrameType::kCredit);
  h.slot = op.slot;
  h.check = op.check;
  sendControl(h);
}

// What the peer waits for may be on its way; then nothing is wrong, however
// many operations ago that was. Otherwise this rank has not sent it: it has not
// come so far, or does not know of it.
void Pair::onAwaited(const FrameHeader& header) {
  const SlotState* state = slots_.find(header.slot);
  if (state == nullptr || state->unseen == 0) {
    contradicts(header);
  }
}

}  // namespace transport::base
GLOO_NAMESPACE_END
