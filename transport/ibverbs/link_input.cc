// Completions of a VerbsLink, and the frames that come with them.
#include <arpa/inet.h>

#include <algorithm>

#include "gloo/common/string.h"
#include "transport/base/copy.h"
#include "transport/ibverbs/link.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {

using base::FrameHeader;
using base::FrameType;

namespace {

constexpr uint32_t kMostCredits = UINT16_MAX;
// What the immediate of a message without head holds.
constexpr uint32_t kDeltaMask =
    kMostCredits | uint32_t{UINT8_MAX} << kSeenShift | kNextOperation;

}  // namespace

// ---- Completions ----

void VerbsLink::onCompletion(const ibv_wc& completion, bool receive,
                             uint32_t number) {
  if (endpoint_->destroyed()) {
    return;
  }
  if (completion.status != IBV_WC_SUCCESS) {
    onFailure(completion, receive);
  } else if (receive) {
    onReceive(completion, number);
  } else {
    if (sends().completed(number)) {
      if (mayGoOn()) {
        touch();
      }
    } else {
      fail(MakeString("request ", number, " is complete, but not on its way"));
    }
  }
}

void VerbsLink::onException(const std::exception& e) {
  if (muted_) {
    abandon();
    return;
  }
  handler_.onException(e);
}

// The first failure is the reason; the requests behind it are flushed. A flush
// without one was caused by the peer or by an event.
void VerbsLink::onFailure(const ibv_wc& completion, bool receive) {
  const std::string why =
      MakeString("an RDMA ", receive ? "receive" : "request",
                 " failed: ", api().wcStatusStr(completion.status), " (status ",
                 static_cast<int>(completion.status), ", vendor code ",
                 completion.vendor_err, ")", endpoint_->hint());
  if (completion.status == IBV_WC_WR_FLUSH_ERR) {
    if (suspicion_.empty()) {
      suspect(why);
      onlyFlushed_ = true;
    }
    return;
  }
  if (completion.status == IBV_WC_RNR_RETRY_EXC_ERR) {
    poller_.statistics().receiverNotReady++;
  }
  fail(why);
}

void VerbsLink::onReceive(const ibv_wc& completion, uint32_t slot) {
  const uint32_t immediate = ntohl(completion.imm_data);
  if (completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
    poller_.statistics().bytesReceived += completion.byte_len;
    release(slot);
    if (!muted_) {
      notify([&] { handler_.onWritten(immediate); });
    }
  } else if ((completion.wc_flags & IBV_WC_WITH_IMM) == 0) {
    onArrival(slot, completion.byte_len);
  } else if ((immediate & ~kDeltaMask) == kHeadlessImmediate) {
    onHeadless(immediate, slot, completion.byte_len);
  } else {
    onLinkMessage(immediate, slot);
  }
}

void VerbsLink::onLinkMessage(uint32_t immediate, uint32_t slot) {
  touch();
  if (immediate == kEndImmediate) {
    endHeld_ = true;
    release(slot);
    return;
  }
  if (immediate > kMostCredits) {
    lose(MakeString("it sent the immediate value ", immediate,
                    ", which means nothing"),
         false);
    return;
  }
  const int error = endpoint_->receives().consumedReserve(slot);
  if (error != 0) {
    fail("a receive could not be posted: " + base::errnoText(error));
  } else if (!sends().addCredits(static_cast<uint16_t>(immediate))) {
    lose("it returned more credits than it was given", false);
  }
}

void VerbsLink::onReceivesPosted() {
  const ReceiveRing& receives = endpoint_->receives();
  if (const int error = receives.error(); error != 0) {
    suspect("a receive could not be posted: " + base::errnoText(error));
  }
  if (receives.creditsDue()) {
    touch();
  }
}

void VerbsLink::onArrival(uint32_t slot, size_t bytes) {
  const std::span frame(endpoint_->receives().at(slot), bytes);
  if (!frame.empty() &&
      static_cast<uint8_t>(frame.front()) == base::kShortHead) {
    onMessage(slot, frame);
  } else {
    onFrame(slot, frame);
  }
}

// What comes with a whole frame; false: the link is lost.
bool VerbsLink::takeCredits(uint16_t credits, size_t payload) {
  if (!sends().addCredits(credits)) {
    lose("it returned more credits than it was given", false);
    return false;
  }
  if (!sends().empty()) {
    touch();  // there may be credits for what waits
  }
  poller_.statistics().framesReceived++;
  poller_.statistics().bytesReceived += payload;
  return true;
}

void VerbsLink::onMessage(uint32_t slot, std::span<const char> frame) {
  base::ShortMessage message;
  uint16_t credits = 0;
  try {
    credits = base::decodeShort(frame, &message);
  } catch (const base::WireError& error) {
    refuse(error);
    return;
  }
  deliver(message, credits, slot, frame.data() + base::kShortHeadBytes);
}

void VerbsLink::onHeadless(uint32_t immediate, uint32_t slot, uint32_t bytes) {
  const base::HeadDelta delta{static_cast<uint8_t>(immediate >> kSeenShift),
                              (immediate & kNextOperation) != 0};
  const base::ShortMessage message = base::withDelta(lastHead_, delta, bytes);
  lastHead_ = message;
  deliver(message, static_cast<uint16_t>(immediate), slot,
          endpoint_->receives().at(slot));
}

void VerbsLink::deliver(const base::ShortMessage& message, uint16_t credits,
                        uint32_t slot, const char* payload) {
  if (!takeCredits(credits, message.bytes)) {
    return;
  }
  if (!muted_) {
    poller_.statistics().bytesCopied += message.bytes;
    bool accepted = false;
    if (!notify([&] { accepted = handler_.onMessage(message, payload); })) {
      return;
    }
    muted_ = !accepted;
  }
  release(slot);
}

void VerbsLink::onFrame(uint32_t slot, std::span<const char> frame) {
  FrameHeader header;
  try {
    header = base::decodeFrame(
        frame.first(std::min(frame.size(), FrameHeader::kBytes)));
  } catch (const base::WireError& error) {
    refuse(error);
    return;
  }
  if (frame.size() != FrameHeader::kBytes + header.payloadBytes) {
    lose(MakeString("it sent a frame of ", frame.size(),
                    " bytes with a payload of ", header.payloadBytes),
         false);
    return;
  }
  if (base::fitsShortHead(header)) {
    lastHead_ = base::shortOf(header);
  }
  if (!takeCredits(header.linkCredits, header.payloadBytes)) {
    return;
  }
  if (muted_ || header.type == FrameType::kBye) {
    byeHeld_ = byeHeld_ || header.type == FrameType::kBye;
    bye_ = header;
    touch();
    release(slot);
    return;
  }
  const char* place = nullptr;
  if (header.payloadBytes > 0) {
    char* to = nullptr;
    if (!notify([&] { to = handler_.onPayload(header); })) {
      return;
    }
    if (to == nullptr) {
      muted_ = true;
      release(slot);
      return;
    }
    base::copyBytes(to, frame.data() + FrameHeader::kBytes,
                    header.payloadBytes);
    poller_.statistics().bytesCopied += header.payloadBytes;
    place = to;
  }
  release(slot);
  notify([&] { handler_.onFrame(header, place); });
}

void VerbsLink::refuse(const base::WireError& error) {
  lose(MakeString("it sent what is not our protocol (", error.what(), ")"),
       false);
}

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
