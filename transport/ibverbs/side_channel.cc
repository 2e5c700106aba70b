#include "transport/ibverbs/side_channel.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "gloo/common/string.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {

using base::FrameHeader;

namespace {

constexpr char kReadyByte = 'R';

}  // namespace

SideChannel::SideChannel(base::UniqueFd socket,
                         std::chrono::milliseconds hostTimeout)
    : socket_(std::move(socket)),
      name_(base::peerAddress(socket_.get()).str()) {
  base::setNoDelay(socket_.get());
  base::setKeepalive(
      socket_.get(),
      std::chrono::duration_cast<std::chrono::seconds>(hostTimeout));
  // (The kernel asks nothing while bytes wait for an answer.)
  base::setUserTimeout(socket_.get(), hostTimeout);
}

// So little fits any socket's buffer.
void SideChannel::write(const char* bytes, size_t count) {
  [[maybe_unused]] const auto n =
      ::send(socket_.get(), bytes, count, MSG_NOSIGNAL);
}

void SideChannel::sayReady() { write(&kReadyByte, 1); }

void SideChannel::sayLast(const FrameHeader& header, const char* payload) {
  if (!socket_) {
    return;
  }
  std::array<char, FrameHeader::kBytes + base::kMaxControlPayload> out;
  base::encode(header, out.data());
  if (header.payloadBytes > 0) {
    std::memcpy(&out[FrameHeader::kBytes], payload, header.payloadBytes);
  }
  write(out.data(), FrameHeader::kBytes + header.payloadBytes);
  ::shutdown(socket_.get(), SHUT_WR);
}

SideChannel::News SideChannel::fail(const std::string& why) {
  error_ = why;
  return News::kBroken;
}

SideChannel::News SideChannel::read() {
  if (!socket_) {
    return News::kNothing;
  }
  // The byte and the frame are told one after the other.
  const size_t limit = ready_ ? bytes_.size() - have_ : 1;
  const ssize_t n = ::recv(socket_.get(), bytes_.data() + have_, limit, 0);
  if (n < 0) {
    const int error = errno;
    return base::mayTryAgain(error) ? News::kNothing
                                    : fail(base::errnoText(error));
  }
  if (n == 0) {
    if (have_ > 0) {
      return fail("it was closed in the middle of a frame");
    }
    return News::kEnded;
  }
  if (!ready_) {
    ready_ = true;
    return bytes_[0] == kReadyByte ? News::kReady
                                   : fail("it sent what is not our protocol");
  }
  have_ += static_cast<size_t>(n);
  return parse();
}

SideChannel::News SideChannel::parse() {
  if (have_ < FrameHeader::kBytes) {
    return read();
  }
  try {
    last_ = base::decodeFrame({bytes_.data(), FrameHeader::kBytes});
  } catch (const base::WireError& error) {
    return fail(
        MakeString("it sent what is not our protocol (", error.what(), ")"));
  }
  const size_t whole = FrameHeader::kBytes + last_.payloadBytes;
  if (whole > bytes_.size() || have_ > whole) {
    return fail("it sent what is not our protocol");
  }
  if (have_ < whole) {
    return read();
  }
  have_ = 0;
  return News::kLast;
}

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
