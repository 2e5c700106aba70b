// The receiving half of ShmLink, and its end.
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "gloo/common/string.h"
#include "transport/shm/link.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

namespace {

// Events of one link in one round: the others, and completions, have a turn.
constexpr int kEventsPerRound = 64;

}  // namespace

template <typename Call>
bool ShmLink::notify(const Call& call) {
  base::Destruction::Watch watch(destruction_);
  call();
  return !watch.destroyed() && socket_ && input_ == Input::kOpen;
}

// The handler throws nothing, so this is still there.
void ShmLink::onException(const std::exception& e) {
  if (muted_) {
    abandon();
    return;
  }
  handler_.onException(e);
}

bool ShmLink::poll() try {
  bool moved = false;
  // Nearly always there is nothing but a flag to look at.
  if (!queue_.empty() || finishing_ || !reads_.empty() || !completed_.empty()) {
    moved = flush();
    moved |= readQueued();
    base::Destruction::Watch watch(destruction_);
    moved |= !completed_.empty();
    report();
    if (watch.destroyed() || !socket_) {
      return true;
    }
  }
  readBudget_ = kReadBudget;
  if (input_ == Input::kOpen && reader_.ready()) {
    return receive() || moved;
  }
  const bool calm = input_ == Input::kOpen && !peerGone_ && readError_ == 0 &&
                    !writer_.broken();
  return (!calm && checkEnd()) || moved;
} catch (const std::exception& e) {
  onException(e);
  return true;
}

void ShmLink::report() {
  base::Destruction::Watch watch(destruction_);
  for (size_t i = 0; i < completed_.size() && input_ != Input::kStopped; i++) {
    const Completion done = completed_[i];
    done.refused ? handler_.onReadRefused(done.token)
                 : handler_.onComplete(done.token);
    if (watch.destroyed()) {
      return;
    }
  }
  completed_.clear();
}

bool ShmLink::receive() {
  // Whoever waits for a message often answers it. Measured with 2 ranks that
  // share no cache, half a round trip of 8 bytes to bound buffers 295 and 217
  // ns, of 64 bytes 465 and 226.
  writer_.fetchNext();
  // A payload whose cell is taken is no reason to be polled again, nor to be
  // woken: it is delivered in this round.
  for (int i = 0; i < kEventsPerRound || reader_.atPayload(); i++) {
    const auto event = reader_.next();
    if (event == FrameReader::Event::kNothing) {
      break;
    }
    const bool goOn = event == FrameReader::Event::kMessage ? onMessage()
                      : event == FrameReader::Event::kBound
                          ? onBound(reader_.boundWrite())
                          : onEvent(event);
    if (!goOn) {
      return true;
    }
    // The peer fills the room of a large payload while we go on.
    if (event == FrameReader::Event::kMoved && reader_.publish()) {
      ringPeer(reader_.wake());
    }
  }
  if (reader_.publish()) {
    ringPeer(reader_.wake());
  }
  return true;
}

// As onEvent().
bool ShmLink::onBound(const FrameReader::BoundWrite& write) {
  auto& statistics = poller_.statistics();
  statistics.framesReceived++;
  statistics.bytesReceived += write.bytes;
  return muted_ || notify([&] {
           handler_.onBound(write.index, write.offset, write.payload,
                            write.bytes);
         });
}

bool ShmLink::onMessage() {
  auto& statistics = poller_.statistics();
  statistics.framesReceived++;
  statistics.bytesReceived += reader_.message().bytes;
  if (muted_) {
    return true;
  }
  bool taken = false;
  if (!notify([&] {
        taken = handler_.onMessage(reader_.message(), reader_.payload());
      })) {
    return false;
  }
  if (!taken && !muted_) {
    input_ = Input::kStopped;
  }
  return taken || muted_;
}

// False: this link is not to be read any further, and may be gone.
bool ShmLink::onEvent(FrameReader::Event event) {
  using Event = FrameReader::Event;
  switch (event) {
    case Event::kPayload: {
      if (muted_) {
        return true;
      }
      char* place = nullptr;
      if (!notify([&] { place = handler_.onPayload(reader_.header()); })) {
        return false;
      }
      if (muted_) {
        return true;
      }
      if (place == nullptr) {
        input_ = Input::kStopped;
        return false;
      }
      reader_.setPlace(place);
      return true;
    }
    case Event::kFrame: {
      auto& statistics = poller_.statistics();
      statistics.framesReceived++;
      statistics.bytesReceived += reader_.header().payloadBytes;
      return muted_ || notify([&] {
               handler_.onFrame(reader_.header(), reader_.place());
             });
    }
    case Event::kEnd:
      input_ = Input::kEnded;
      checkEnd();
      return false;
    case Event::kBroken:
      input_ = Input::kEnded;
      giveUp(
          MakeString("it has written what is not our protocol into the shared"
                     " memory: ",
                     reader_.error()));
      return false;
    default:
      return true;
  }
}

// What has ended the link, once all that was sent before is delivered. True
// when it was lost now.
bool ShmLink::checkEnd() {
  if (!socket_) {
    return false;
  }
  if (writer_.broken()) {
    lose("it has written impossible counts into the shared memory", false);
    return true;
  }
  if (readError_ != 0) {
    giveUp("reading its memory: " + base::errnoText(readError_));
    return true;
  }
  // A peer that leaves reads to our end.
  if (input_ == Input::kEnded && queue_.empty()) {
    if (finishing_ && !endSent_ && !peerGone_) {
      return false;  // our end goes first
    }
    lose("it was closed", true);
    return true;
  }
  // Looked at again: the last records may have come just before the end.
  if (peerGone_ && (input_ != Input::kOpen || !reader_.ready())) {
    lose(reader_.inFrame() ? "it ended in the middle of a frame"
                           : "it was closed",
         !reader_.inFrame());
    return true;
  }
  return false;
}

void ShmLink::lose(const std::string& text, bool ended) {
  const bool silent = muted_ || input_ == Input::kStopped;
  queue_.clear();
  reads_.clear();
  closeSocket();
  if (!silent) {
    tellLost(text, ended);
  }
}

// What this end alone has found. The peer goes on, and would take the end of
// the socket for that of the process: the handler has time for finishWith(),
// after which the link ends as others do.
void ShmLink::giveUp(const std::string& text) {
  if (muted_ || finishing_ || input_ == Input::kStopped) {
    lose(text, false);
    return;
  }
  reads_.clear();
  base::Destruction::Watch watch(destruction_);
  tellLost(text, false);
  if (watch.destroyed()) {
    return;
  }
  readError_ = 0;
  if (!finishing_) {
    abandon();
  }
}

void ShmLink::tellLost(const std::string& text, bool ended) {
  base::Destruction::Watch watch(destruction_);
  report();
  if (watch.destroyed()) {
    return;
  }
  internal::Cause cause;
  cause.kind = internal::Cause::Kind::kPeerLost;
  cause.text = MakeString("shared memory with process ", pid_, ": ", text);
  muted_ = true;
  handler_.onLost(std::move(cause), ended);
}

void ShmLink::onSocket() try {
  poller_.statistics().systemCalls++;
  if (!loans_.receive(socket_.get())) {
    ignorePeer();
    peerGone_ = true;
  }
} catch (const std::exception& e) {
  onException(e);
}

// What it has put into the ring is read first, as when the socket has ended.
void ShmLink::onProcessEnded() {
  ignorePeer();
  peerGone_ = true;
}

// Once; after its end both would be readable for ever.
void ShmLink::ignorePeer() {
  if (peerGone_) {
    return;
  }
  poller_.forget(socket_.get());
  if (watchedProcess_ >= 0) {
    poller_.forget(watchedProcess_);
  }
}

size_t ShmLink::wordsToArm() const {
  return queue_.empty() && !finishing_ ? 1 : 2;
}

// A process that inherited the link sleeps on none of its words: they are its
// parent's to set.
bool ShmLink::arm(base::FutexWords* words) {
  if (!socket_ || origin_.inherited()) {
    return false;
  }
  bool again = !completed_.empty() || !reads_.empty() ||
               (peerGone_ && input_ != Input::kStopped);
  if (input_ == Input::kOpen) {
    again |= reader_.arm(words);
  }
  if (!queue_.empty() || (finishing_ && !endSent_)) {
    again |= writer_.armForRoom(words);
  }
  return again;
}

void ShmLink::disarm() {
  if (!origin_.inherited()) {
    reader_.disarm();
    writer_.disarm();
  }
}

}  // namespace transport::shm
GLOO_NAMESPACE_END
