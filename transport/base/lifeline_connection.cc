#include "transport/base/lifeline_connection.h"

#include <algorithm>
#include <cerrno>

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

// Nothing large is ever under way, so a silent host is a lost one.
constexpr std::chrono::seconds kLossLimit{5};

// In a row, of the lines' one thread, which holds what other threads want.
constexpr int kMostReads = 16;

}  // namespace

LifelineConnection::LifelineConnection(UniqueFd socket)
    : socket_(std::move(socket)) {
  setKeepalive(socket_.get(), kLossLimit);
  setUserTimeout(socket_.get(), kLossLimit);
}

void LifelineConnection::say(FrameType type, const std::vector<char>& payload) {
  FrameHeader header;
  header.type = type;
  header.payloadBytes = static_cast<uint32_t>(payload.size());
  const size_t at = out_.size();
  out_.resize(at + FrameHeader::kBytes);
  encode(header, out_.data() + at);
  out_.insert(out_.end(), payload.begin(), payload.end());
  flush();
}

void LifelineConnection::sayCause(const internal::Cause& cause) {
  if (!closing_) {
    say(FrameType::kAbort, encode(cause));
  }
}

void LifelineConnection::sayBye() {
  if (!closing_) {
    closing_ = true;
    say(FrameType::kBye, {});
  }
}

bool LifelineConnection::flush() {
  while (!out_.empty()) {
    const ssize_t n = ::send(socket_.get(), out_.data(), out_.size(),
                             MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return false;
    }
    // An error is noticed by the next receive.
    out_.erase(out_.begin(), n < 0 ? out_.end() : out_.begin() + n);
  }
  if (closing_) {
    ::shutdown(socket_.get(), SHUT_WR);
  }
  return true;
}

LifelineConnection::News LifelineConnection::receive() {
  News news;
  for (int i = 0; i < kMostReads && !news.ended; i++) {
    const ssize_t n =
        ::recv(socket_.get(), in_.data() + have_, in_.size() - have_, 0);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      break;
    }
    if (n <= 0) {
      news.ended = true;
      news.why = n == 0 ? "its connections were closed" : errnoText(errno);
      break;
    }
    have_ += static_cast<size_t>(n);
    try {
      take(news);
    } catch (const WireError& error) {
      news.ended = true;
      news.broken = true;
      news.why = error.what();
    }
  }
  return news;
}

void LifelineConnection::take(News& news) {
  size_t at = 0;
  while (have_ - at >= FrameHeader::kBytes) {
    const char* frame = in_.data() + at;
    const FrameHeader header = decodeFrame({frame, FrameHeader::kBytes});
    if (header.payloadBytes > kMaxControlPayload) {
      throw WireError("a lifeline's frame is too long");
    }
    const size_t total = FrameHeader::kBytes + header.payloadBytes;
    if (have_ - at < total) {
      break;
    }
    at += total;
    news.confirmed = true;
    if (header.type == FrameType::kAbort && !news.cause) {
      news.cause =
          decodeCause({frame + FrameHeader::kBytes, header.payloadBytes});
    }
    news.bye = news.bye || header.type == FrameType::kBye;
  }
  std::copy(in_.begin() + at, in_.begin() + have_, in_.begin());
  have_ -= at;
}

}  // namespace transport::base
GLOO_NAMESPACE_END
