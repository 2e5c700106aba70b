#include "transport/base/hello_exchange.h"

#include <cerrno>
#include <span>

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

bool mustWait(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

HelloExchange::Progress HelloExchange::fail(std::string why) {
  why_ = std::move(why);
  socket_.reset();
  return Progress::kFailed;
}

HelloExchange::Progress HelloExchange::failErrno(int error) {
  error_ = error;
  return fail(errnoText(error) + errnoRemedy(error));
}

bool HelloExchange::isShort() const {
  return error_ == EMFILE || error_ == ENFILE || error_ == ENOBUFS ||
         error_ == ENOMEM || error_ == EADDRNOTAVAIL;
}

HelloExchange::Progress HelloExchange::connect(const SocketAddress& to) {
  const int error = startConnect(to, &socket_);
  if (error != 0 && error != EINPROGRESS) {
    return failErrno(error);
  }
  connecting_ = error != 0;
  return Progress::kBlocked;
}

void HelloExchange::setOutgoing(const Hello& hello) {
  out_ = encode(hello);
  sent_ = 0;
}

HelloExchange::Progress HelloExchange::send() {
  if (connecting_) {
    const int error = takeSocketError(socket_.get());
    if (error != 0) {
      return failErrno(error);
    }
  }
  while (sent_ < out_.size()) {
    const ssize_t n = ::send(socket_.get(), out_.data() + sent_,
                             out_.size() - sent_, MSG_NOSIGNAL);
    if (n >= 0) {
      connecting_ = false;
      sent_ += static_cast<size_t>(n);
    } else if (mustWait(errno) || (connecting_ && errno == ENOTCONN)) {
      return Progress::kBlocked;
    } else if (errno != EINTR) {
      return failErrno(errno);
    }
  }
  return Progress::kDone;
}

HelloExchange::Progress HelloExchange::receive() {
  if (in_.empty()) {
    in_.resize(Hello::kHeadBytes);
  }
  try {
    while (received_ < in_.size()) {
      const ssize_t n = ::recv(socket_.get(), in_.data() + received_,
                               in_.size() - received_, 0);
      if (n == 0) {
        hungUp_ = true;
        return fail("the connection was closed during the greeting");
      }
      if (n < 0 && mustWait(errno)) {
        return Progress::kBlocked;
      }
      if (n < 0 && errno != EINTR) {
        return failErrno(errno);
      }
      received_ += n > 0 ? static_cast<size_t>(n) : 0;
      if (received_ == Hello::kHeadBytes && in_.size() == received_) {
        in_.resize(helloLength(
            std::span<const char, Hello::kHeadBytes>(in_.data(), received_)));
      }
    }
    theirs_ = decodeHello(in_);
  } catch (const WireError& error) {
    garbled_ = true;
    return fail(error.what());
  }
  return Progress::kDone;
}

}  // namespace transport::base
GLOO_NAMESPACE_END
