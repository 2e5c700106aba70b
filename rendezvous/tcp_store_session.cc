#include "rendezvous/tcp_store_session.h"

#include <sys/socket.h>

#include <cerrno>

#include "gloo/rendezvous/tcp_store.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous::tcpstore {

size_t Session::heldBytes() const {
  size_t bytes = in.capacity() + out.capacity();
  for (const auto& key : keys) {
    bytes += TcpStoreServer::kEntryBytes + key.size();
  }
  return bytes;
}

bool Session::send() {
  while (sent < out.size()) {
    const ssize_t took =
        ::send(fd.get(), out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
    if (took >= 0) {
      sent += static_cast<size_t>(took);
    } else if (errno == EAGAIN) {
      return true;
    } else if (errno != EINTR) {
      return false;
    }
  }
  out = std::vector<char>();  // returns the memory
  sent = 0;
  return true;
}

}  // namespace rendezvous::tcpstore
GLOO_NAMESPACE_END
