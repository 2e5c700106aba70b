#include "transport/shm/descriptor_message.h"

#include <sys/socket.h>

#include <cstring>

GLOO_NAMESPACE_BEGIN
namespace transport::shm {
namespace {

// Bytes, and room for the control message that carries one descriptor.
struct Message {
  explicit Message(std::span<char> bytes) : part{bytes.data(), bytes.size()} {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  iovec part;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
};

}  // namespace

ssize_t sendDescriptor(int socket, std::span<const char> bytes,
                       int descriptor) {
  Message message({const_cast<char*>(bytes.data()), bytes.size()});
  cmsghdr* c = CMSG_FIRSTHDR(&message.header);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(c), &descriptor, sizeof(descriptor));
  return ::sendmsg(socket, &message.header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

ssize_t receiveDescriptor(int socket, std::span<char> bytes,
                          base::UniqueFd& descriptor) {
  Message message(bytes);
  const ssize_t n =
      ::recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (n < 0) {
    return n;
  }
  for (cmsghdr* c = CMSG_FIRSTHDR(&message.header); c != nullptr;
       c = CMSG_NXTHDR(&message.header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    // There is room for two, because of the alignment: those of who sends more
    // than one are ours, too.
    for (size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len;
         at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, reinterpret_cast<const char*>(c) + at, sizeof(fd));
      descriptor = base::UniqueFd(fd);
    }
  }
  return n;
}

}  // namespace transport::shm
GLOO_NAMESPACE_END
