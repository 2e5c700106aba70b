// What pairs do about ranks that disagree.
//
// Ranks that disagree about a collective may all wait, each for one that sends
// nothing, and no message contradicts. So who has waited for long tells the
// sender what for.
#include "gloo/common/string.h"
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

bool Pair::tell(const Dispute& dispute) {
  if (link_ == nullptr || byeSent_ || departed_ || failed_) {
    return false;
  }
  const std::vector<char> payload = encode(dispute);
  FrameHeader h = header(FrameType::kDispute);
  h.payloadBytes = static_cast<uint32_t>(payload.size());
  sendControl(h, payload.data());
  return true;
}

void Pair::onDispute(const FrameHeader& header, const char* payload) {
  try {
    const Dispute dispute = decodeDispute({payload, header.payloadBytes});
    if (dispute.said.rank < 0 || dispute.said.rank >= context_.size() ||
        dispute.said.rank == context_.rank()) {
      protocolError(MakeString("a dispute with rank ", dispute.said.rank));
    } else if (!byeSent_) {  // who has left is not concerned
      context_.onDispute(dispute);
    }
  } catch (const WireError& e) {
    protocolError(e.what());
  }
}

// The context is about to fail: what the peers say matters only if it is why.
void Pair::onFrameInDispute(const FrameHeader& header, const char* payload) {
  switch (header.type) {
    case FrameType::kAbort:
      onAbort(header, payload);
      break;
    case FrameType::kDispute:
      onDispute(header, payload);
      break;
    case FrameType::kBye:
      context_.endDispute();
      break;
    default:
      break;
  }
}

}  // namespace transport::base
GLOO_NAMESPACE_END
