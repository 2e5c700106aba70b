// The reading half of TcpLink.
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "gloo/common/string.h"
#include "gloo/internal/copy.h"
#include "transport/tcp/link.h"

GLOO_NAMESPACE_BEGIN
namespace transport::tcp {

using base::FrameHeader;

namespace {

constexpr size_t kReadBytes = 256 << 10;
// After a large frame another one is likely: little is read ahead of its head,
// since that would have to be copied.
constexpr size_t kLargeFrame = 16 << 10;
constexpr size_t kReadAhead = 1 << 10;
constexpr uint32_t kStalledMilliseconds = 5000;
constexpr uint8_t kSilentProbes = 3;

}  // namespace

template <typename Call>
bool TcpLink::notify(const Call& call) {
  base::Destruction::Watch watch(destruction_);
  call();
  return !watch.destroyed() && socket_ && !muted_ && input_ == Input::kOpen;
}

// The handler throws nothing, so this is still there.
void TcpLink::onException(const std::exception& e) {
  if (muted_) {
    abandon();
    return;
  }
  handler_.onException(e);
}

bool TcpLink::receive() try {
  if (input_ != Input::kOpen) {
    return false;
  }
  const ssize_t n = readOnce();
  if (n < 0 && base::mayTryAgain(errno)) {
    if (sendError_ == 0) {
      return false;
    }
    // The connection lives, but takes nothing more: memory that cannot be read,
    // a packet filter.
    lose(MakeString("cannot send: ", base::errnoText(sendError_)), false);
    return true;
  }
  if (n <= 0) {
    endInput(n == 0 ? 0 : errno);
  } else if (muted_) {
    begin_ = end_ = missing_ = 0;
  } else {
    takePayload(static_cast<size_t>(n));
    parse();
  }
  return true;
} catch (const std::exception& e) {
  onException(e);
  return true;
}

// The rest of a payload goes to its place; what follows it, to the buffer.
ssize_t TcpLink::readOnce() {
  iovec parts[2];
  int count = 0;
  if (missing_ > 0 && !muted_) {
    parts[count++] = {payload_ + (header_.payloadBytes - missing_),
                      std::min(missing_, kReadBytes)};
  }
  if (missing_ < kReadBytes || muted_) {
    const bool large = header_.payloadBytes >= kLargeFrame && !muted_;
    parts[count++] = {buffer_.get() + end_,
                      large ? kReadAhead : kBufferBytes - end_};
  }
  poller_.statistics().systemCalls++;
  if (count == 1) {
    return ::recv(socket_.get(), parts[0].iov_base, parts[0].iov_len, 0);
  }
  return ::readv(socket_.get(), parts, count);
}

void TcpLink::takePayload(size_t n) {
  const size_t direct = std::min(n, missing_);
  missing_ -= direct;
  end_ += n - direct;
}

// Delivers all whole frames of the buffer. REQUIRES: the buffer is empty, or
// nothing is missing of an earlier payload.
void TcpLink::parse() {
  if (header_.payloadBytes > 0 && payload_ != nullptr && missing_ == 0 &&
      !endFrame()) {
    return;
  }
  while (missing_ == 0 && end_ - begin_ >= FrameHeader::kBytes) {
    if (!beginFrame()) {
      return;
    }
    const size_t here = std::min(missing_, end_ - begin_);
    if (here > 0) {
      internal::copyMemory(payload_, buffer_.get() + begin_, here);
      begin_ += here;
      missing_ -= here;
      poller_.statistics().bytesCopied += here;
    }
    if (missing_ == 0 && !endFrame()) {
      return;
    }
  }
  if (begin_ == end_) {
    begin_ = end_ = 0;
  } else if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
}

bool TcpLink::beginFrame() {
  try {
    header_ = base::decodeFrame({buffer_.get() + begin_, FrameHeader::kBytes});
  } catch (const base::WireError& error) {
    lose(MakeString("it sent what is not our protocol (", error.what(), ")"),
         false);
    return false;
  }
  begin_ += FrameHeader::kBytes;
  const size_t bytes = header_.payloadBytes;
  payload_ = nullptr;
  if (bytes > std::max(caps_.maxFrameBytes, base::kMaxControlPayload)) {
    lose(MakeString("it sent a frame of ", bytes, " bytes; the limit is ",
                    caps_.maxFrameBytes),
         false);
    return false;
  }
  if (bytes == 0) {
    return true;
  }
  char* place = nullptr;
  if (!notify([&] { place = handler_.onPayload(header_); })) {
    return false;
  }
  payload_ = place;
  if (payload_ == nullptr) {
    input_ = Input::kStopped;
    poller_.stopReading(place_);
    return false;
  }
  missing_ = bytes;
  return true;
}

bool TcpLink::endFrame() {
  auto& statistics = poller_.statistics();
  statistics.framesReceived++;
  statistics.bytesReceived += header_.payloadBytes;
  const char* payload = std::exchange(payload_, nullptr);
  return notify([&] { handler_.onFrame(header_, payload); });
}

void TcpLink::endInput(int error) {
  const bool inFrame = missing_ > 0 || begin_ != end_;
  input_ = Input::kEnded;
  poller_.stopReading(place_);
  if (error != 0 || sendError_ != 0) {
    lose(base::errnoText(error != 0 ? error : sendError_), false);
  } else if (inFrame) {
    lose("it was closed in the middle of a frame", false);
  } else if (queue_.empty()) {
    lose("it was closed", true);
  }
  // else: a peer that leaves reads to our end: progress() reports it when the
  // last of ours has left
}

bool TcpLink::progress() try {
  const bool moved = flush();
  if (!completed_.empty()) {
    report();
    return true;
  }
  if (input_ == Input::kEnded && socket_ && !hasOutput()) {
    endInput(0);
    return true;
  }
  return (sendError_ != 0 && receive()) || moved;
} catch (const std::exception& e) {
  onException(e);
  return true;
}

void TcpLink::report() {
  base::Destruction::Watch watch(destruction_);
  for (size_t i = 0; i < completed_.size() && input_ != Input::kStopped; i++) {
    handler_.onComplete(completed_[i]);
    if (watch.destroyed()) {
      return;
    }
  }
  completed_.clear();
}

void TcpLink::lose(const std::string& text, bool ended) {
  const bool silent = muted_ || input_ == Input::kStopped;
  queue_.clear();
  closeSocket();
  if (silent) {
    return;
  }
  base::Destruction::Watch watch(destruction_);
  report();
  if (watch.destroyed()) {
    return;
  }
  internal::Cause cause;
  cause.kind = internal::Cause::Kind::kPeerLost;
  cause.text = MakeString("connection to ", name_, ": ", text);
  muted_ = true;
  handler_.onLost(std::move(cause), ended);
}

bool TcpLink::checkStalled() try {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (!socket_ ||
      ::getsockopt(socket_.get(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0) {
    return false;
  }
  // While the window is closed nothing is unacknowledged, and the kernel asks
  // now and then whether it is open, which a host answers.
  const bool waits = (info.tcpi_unacked > 0 && info.tcpi_retransmits > 0) ||
                     info.tcpi_probes >= kSilentProbes;
  if (waits && info.tcpi_last_ack_recv > kStalledMilliseconds) {
    lose(MakeString("its host has not answered for ",
                    info.tcpi_last_ack_recv / 1000, " s"),
         false);
    return false;
  }
  int unsent = 0;  // bytes that the socket still holds
  ::ioctl(socket_.get(), SIOCOUTQ, &unsent);
  return unsent > 0 || !queue_.empty();
} catch (const std::exception& e) {
  onException(e);
  return false;
}

}  // namespace transport::tcp
GLOO_NAMESPACE_END
