#include "transport/tcp/link.h"

#include <netinet/tcp.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gloo/common/error.h"

GLOO_NAMESPACE_BEGIN
namespace transport::tcp {

using base::FrameHeader;

namespace {

// Over loopback a call hands over whole segments, since what is left of a
// call's bytes would go as a small one: sixteen of them, a megabyte. Between
// two calls the sender's socket takes the acknowledgements, on the receiver's
// processor; within one they wait (measured: one call of 1 MiB takes less than
// half of the time of sixteen). Ranks that share cores take turns less often.
constexpr size_t kJumboSegment = 16 << 10;
constexpr size_t kJumboSegments = 16;
constexpr size_t kSendBytes = 256 << 10;
// Up to here a copy next to the head takes less than the second part of a call.
constexpr size_t kCopiedBytes = 1 << 10;
// The segment grows with the peer's window while a connection is young: looked
// at again after so many calls.
constexpr uint32_t kLookAgainCalls = 32;

size_t bytesPerCall(int socket) {
  int segment = 0;
  socklen_t length = sizeof(segment);
  ::getsockopt(socket, IPPROTO_TCP, TCP_MAXSEG, &segment, &length);
  const auto bytes = static_cast<size_t>(std::max(segment, 0));
  return bytes >= kJumboSegment ? kJumboSegments * bytes : kSendBytes;
}

}  // namespace

TcpLink::TcpLink(TcpPoller& poller, base::UniqueFd socket,
                 const base::LinkCaps& caps, base::LinkHandler& handler)
    : poller_(poller),
      socket_(std::move(socket)),
      caps_(caps),
      handler_(handler),
      name_(base::peerAddress(socket_.get()).str()),
      callBytes_(bytesPerCall(socket_.get())),
      buffer_(std::make_unique<char[]>(kBufferBytes)) {
  completed_.reserve(64);
  base::setNoDelay(socket_.get());
  base::setKeepalive(socket_.get(), std::chrono::seconds(5));
  place_ = poller_.add(*this, socket_.get());
}

TcpLink::~TcpLink() { abandon(); }

std::string TcpLink::str() const { return "tcp " + name_; }

// ---- Output
// ------------------------------------------------------------------

bool TcpLink::send(const FrameHeader& header, const char* payload,
                   void* token) {
  if (!socket_ || sendError_ != 0 || finishing_) {
    return false;
  }
  const size_t total = FrameHeader::kBytes + header.payloadBytes;
  auto& statistics = poller_.statistics();
  statistics.framesSent++;
  statistics.bytesSent += header.payloadBytes;
  const bool hold = std::exchange(hold_, false) && token != nullptr;
  size_t sent = 0;
  if (queue_.empty() && !hold) {
    sent = transmit(header, payload);
    poller_.watch();
    if (sent == total) {
      return true;
    }
  }
  const bool copy = token == nullptr && header.payloadBytes > 0;
  try {
    queue_.push(header, payload, token, copy, sent);
  } catch (...) {
    if (sent > 0) {
      abandon();  // nothing can follow what has left of it
    }
    throw;
  }
  poller_.activate(place_);
  if (hold) {
    holding_ = true;
  } else {
    if (std::exchange(holding_, false)) {
      flush();
    }
    poller_.nudge();  // whoever sleeps may not have asked for room
  }
  return token == nullptr;
}

// Past the queue, with one call: returns how many bytes of the frame have left.
// What does not fit waits in the queue for more to fill the next segment.
size_t TcpLink::transmit(const FrameHeader& header, const char* payload) {
  std::array<char, FrameHeader::kBytes + kCopiedBytes> frame;
  base::encode(header, frame.data());
  const size_t body =
      std::min<size_t>(header.payloadBytes, callBytes_ - FrameHeader::kBytes);
  countCall();
  poller_.statistics().systemCalls++;
  ssize_t n = 0;
  if (body <= kCopiedBytes) {
    if (body > 0) {
      std::memcpy(frame.data() + FrameHeader::kBytes, payload, body);
    }
    n = ::send(socket_.get(), frame.data(), FrameHeader::kBytes + body,
               MSG_NOSIGNAL);
  } else {
    iovec parts[2] = {{frame.data(), FrameHeader::kBytes},
                      {const_cast<char*>(payload), body}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    n = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
  }
  if (n < 0 && !base::mayTryAgain(errno)) {
    sendError_ = errno;
  }
  return static_cast<size_t>(std::max<ssize_t>(n, 0));
}

void TcpLink::countCall() {
  if (++calls_ % kLookAgainCalls == 0) {
    callBytes_ = bytesPerCall(socket_.get());
  }
}

// One system call's worth of the queue; true if anything left.
bool TcpLink::flush() {
  if (!hasOutput()) {
    return false;
  }
  std::array<iovec, FrameQueue::kMaxParts> parts;
  msghdr message{};
  message.msg_iov = parts.data();
  countCall();
  message.msg_iovlen = queue_.gather(parts, callBytes_);
  poller_.statistics().systemCalls++;
  const ssize_t n = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
  if (n < 0) {
    if (!base::mayTryAgain(errno)) {
      // What the peer sent before it went may still be read: its last word.
      sendError_ = errno;
      queue_.clear();
    }
    return false;
  }
  queue_.take(static_cast<size_t>(n), completed_);
  holding_ = holding_ && !queue_.empty();
  poller_.watch();
  if (queue_.empty() && finishing_) {
    shutDown();
  }
  return true;
}

void TcpLink::expect(bool waiting) {
  expected_ = waiting;
  if (waiting && socket_) {
    poller_.activate(place_);
  }
}

void TcpLink::finish() {
  finishing_ = true;
  if (queue_.empty()) {
    shutDown();
  }
}

void TcpLink::finishWith(const FrameHeader& last, const char* payload) {
  if (!socket_) {
    return;
  }
  muted_ = true;
  completed_.clear();
  queue_.dropUnbegun();
  begin_ = end_ = missing_ = 0;
  if (input_ == Input::kStopped) {
    input_ = Input::kOpen;
    poller_.resumeReading(place_);
  }
  (void)send(last, payload, nullptr);
  finish();
}

void TcpLink::shutDown() {
  if (socket_ && !shutDown_) {
    ::shutdown(socket_.get(), SHUT_WR);
  }
  shutDown_ = true;
}

bool TcpLink::finished() const {
  return !socket_ || sendError_ != 0 || (shutDown_ && input_ == Input::kEnded);
}

void TcpLink::abandon() {
  queue_.clear();
  completed_.clear();
  closeSocket();
}

void TcpLink::closeSocket() {
  input_ = Input::kEnded;
  if (socket_) {
    poller_.remove(place_);
    // A child that is being forked may have a copy of it.
    ::shutdown(socket_.get(), SHUT_RDWR);
    socket_.reset();
  }
}

}  // namespace transport::tcp
GLOO_NAMESPACE_END
