// What happens to a VerbsLink: completions, the side channel, failures.
#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "gloo/common/string.h"
#include "transport/base/copy.h"
#include "transport/ibverbs/link.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {

using base::FrameHeader;
using base::FrameType;

namespace {

// How long a queue pair that has failed without a reason waits for the peer's.
constexpr std::chrono::milliseconds kSuspect{250};
constexpr uint32_t kCreditsMask = UINT16_MAX;

}  // namespace

// Around calls of the handler's: tells whether they have destroyed the link.
class VerbsLink::Guard {
 public:
  explicit Guard(const VerbsLink& link)
      : poller_(link.poller_),
        place_(link.endpoint_->place()),
        tag_(poller_.tagOf(place_, false)) {}
  // Places are given out anew with another tag.
  bool destroyed() const { return poller_.tagOf(place_, false) != tag_; }

 private:
  const VerbsPoller& poller_;
  const uint32_t place_;
  const uint64_t tag_;
};

// Runs a call of the handler's; false when nothing may be told any more.
template <typename Call>
bool VerbsLink::notify(const Call& call) {
  Guard guard(*this);
  call();
  return !guard.destroyed() && !muted_;
}

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
    sends().completed(number);
    touch();
  }
}

// The first failure is the reason; the requests behind it are flushed. A flush
// without one was caused by the peer or by an event.
void VerbsLink::onFailure(const ibv_wc& completion, bool receive) {
  const std::string why =
      MakeString("an RDMA ", receive ? "receive" : "request",
                 " failed: ", api().wcStatusStr(completion.status), " (status ",
                 static_cast<int>(completion.status), ", vendor code ",
                 completion.vendor_err, ")");
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
  } else if ((completion.wc_flags & IBV_WC_WITH_IMM) != 0) {
    onLinkMessage(immediate, slot);
  } else {
    onArrival(slot, completion.byte_len);
  }
}

void VerbsLink::onLinkMessage(uint32_t immediate, uint32_t slot) {
  touch();
  if (immediate == kEndImmediate) {
    endHeld_ = true;
    release(slot);
    return;
  }
  const int error = endpoint_->receives().consumedReserve(slot);
  if (error != 0) {
    fail("a receive could not be posted: " + base::errnoText(error));
  } else if (!sends().addCredits(immediate & kCreditsMask)) {
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
  if (!takeCredits(credits, message.bytes)) {
    return;
  }
  if (!muted_) {
    poller_.statistics().bytesCopied += message.bytes;
    bool accepted = false;
    if (!notify([&] {
          accepted =
              handler_.onMessage(message, frame.data() + base::kShortHeadBytes);
        })) {
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

// ---- The side channel ----

void VerbsLink::onSocket() {
  if (!side_) {
    return;
  }
  switch (side_.read()) {
    case SideChannel::News::kNothing:
      break;
    case SideChannel::News::kReady:
      expectSide(false);
      if (!endpoint_->destroyed()) {
        sends().open(peerReceives_);
        touch();
      }
      break;
    case SideChannel::News::kLast:
      onLastWord();
      break;
    case SideChannel::News::kEnded:
    case SideChannel::News::kBroken:
      sideEnded_ = true;
      close();
      touch();
      break;
  }
}

// Why the peer has given the queue pair up.
void VerbsLink::onLastWord() {
  const FrameHeader header = side_.last();
  if (muted_) {
    return;
  }
  char* place = nullptr;
  if (header.payloadBytes > 0) {
    if (!notify([&] { place = handler_.onPayload(header); }) ||
        place == nullptr) {
      return;
    }
    std::memcpy(place, side_.lastPayload(), header.payloadBytes);
  }
  notify([&] { handler_.onFrame(header, place); });
}

// ---- After the completions ----

bool VerbsLink::hasNews() const {
  if (endpoint_->destroyed()) {
    return false;
  }
  return sends().anyDone() || sends().error() != 0 || (sideEnded_ && !muted_) ||
         ((byeHeld_ || endHeld_) && sends().borrowed() == 0);
}

bool VerbsLink::settle(bool drained) {
  if (endpoint_->destroyed()) {
    return false;
  }
  Guard guard(*this);
  bool moved = report();
  if (guard.destroyed() || endpoint_->destroyed()) {
    return true;
  }
  if (sends().flush()) {
    moved = true;
    touch();  // frames that were copied now are to be reported
  }
  if (endpoint_->receives().creditsDue()) {
    moved |= sends().sendCredits();
  }
  if (sends().error() != 0) {
    fail("a request could not be posted: " + base::errnoText(sends().error()));
    return true;
  }
  moved |= deliverHeld();
  if (guard.destroyed() || endpoint_->destroyed()) {
    return true;
  }
  return judge(drained) || moved;
}

bool VerbsLink::report() {
  std::vector<void*>& done = sends().done();
  if (done.empty()) {
    return false;
  }
  for (size_t i = 0; i < done.size(); i++) {
    if (!muted_ && !notify([&] { handler_.onComplete(done[i]); })) {
      return true;  // this may be gone
    }
  }
  done.clear();
  return true;
}

bool VerbsLink::deliverHeld() {
  if ((!byeHeld_ && !endHeld_) || sends().borrowed() > 0) {
    return false;
  }
  if (std::exchange(byeHeld_, false) && !muted_ &&
      !notify([&] { handler_.onFrame(bye_, nullptr); })) {
    return true;
  }
  if (std::exchange(endHeld_, false)) {
    peerEnded_ = true;
    if (!std::exchange(muted_, true)) {
      internal::Cause cause;
      cause.kind = internal::Cause::Kind::kPeerLost;
      cause.text = str() + ": it was closed";
      handler_.onLost(std::move(cause), true);
    }
  }
  return true;
}

// The peer is gone, or the queue pair has failed and nobody says why.
bool VerbsLink::judge(bool drained) {
  if (muted_) {
    return false;
  }
  if (sideEnded_ && drained) {
    lose(side_.error().empty() ? "it was closed" : side_.error(),
         side_.error().empty());
    return true;
  }
  if (!suspicion_.empty() && Clock::now() >= suspectUntil_) {
    lose(suspicion_, false);
    return true;
  }
  if (sideEnded_ || !suspicion_.empty()) {
    touch();
  }
  return false;
}

void VerbsLink::suspect(const std::string& why) {
  if (std::exchange(onlyFlushed_, false)) {
    suspicion_ = why;  // an event that came behind its own consequence
  } else if (suspicion_.empty()) {
    suspicion_ = why;
    suspectUntil_ = Clock::now() + kSuspect;
    expectSide(true);
    touch();
  }
}

// The peer may have said why already.
void VerbsLink::fail(const std::string& why) {
  if (muted_) {
    endpoint_->destroy();  // nobody has to hear of it
  }
  if (endpoint_->destroyed()) {
    return;
  }
  Guard guard(*this);
  onSocket();
  if (!guard.destroyed() && !muted_) {
    lose(why, false);
  }
}

void VerbsLink::lose(const std::string& text, bool ended) {
  Guard guard(*this);
  report();
  if (guard.destroyed() || muted_) {
    return;
  }
  endpoint_->destroy();
  muted_ = true;
  internal::Cause cause;
  cause.kind = internal::Cause::Kind::kPeerLost;
  cause.text = MakeString(str(), ": ", text);
  handler_.onLost(std::move(cause), ended);
}

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
