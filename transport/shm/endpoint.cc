#include "transport/shm/endpoint.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>

#include "gloo/common/error.h"
#include "gloo/common/string.h"
#include "transport/base/link.h"
#include "transport/shm/descriptor_message.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {
namespace {

constexpr int kSocketType = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
// Connections that have not said what they are for.
constexpr size_t kMostWaiting = 4096;
constexpr char kPrefix[] = "gloo-";

struct Name {
  sockaddr_un address{};
  socklen_t length = 0;

  explicit Name(const Secret& secret) {
    constexpr char kDigits[] = "0123456789abcdef";
    address.sun_family = AF_UNIX;
    char* at = address.sun_path + 1;  // the first byte 0: abstract
    std::memcpy(at, kPrefix, sizeof(kPrefix) - 1);
    at += sizeof(kPrefix) - 1;
    for (const char c : secret) {
      *at++ = kDigits[static_cast<uint8_t>(c) >> 4];
      *at++ = kDigits[static_cast<uint8_t>(c) & 15];
    }
    length =
        static_cast<socklen_t>(at - reinterpret_cast<const char*>(&address));
  }
  const sockaddr* get() const {
    return reinterpret_cast<const sockaddr*>(&address);
  }
};

base::UniqueFd makeSocket() {
  base::UniqueFd made(::socket(AF_UNIX, kSocketType, 0));
  if (!made) {
    const int error = errno;
    GLOO_THROW_IO_EXCEPTION("cannot make a Unix socket: ",
                            base::errnoText(error), base::errnoRemedy(error));
  }
  return made;
}

// Whether the other end is a process of this user; its process id.
bool ours(int socket, pid_t* pid) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
    return false;
  }
  *pid = peer.pid;
  return peer.uid == ::geteuid();
}

// Users that a user namespace does not name all have one number there
// (user_namespaces(7)): with that number as one's own, nobody can be told from
// oneself.
void checkUser() {
  uid_t nobody = 65534;
  std::ifstream("/proc/sys/kernel/overflowuid") >> nobody;
  uint64_t inside = 0;
  uint64_t outside = 0;
  uint64_t length = 0;
  std::ifstream("/proc/self/uid_map") >> inside >> outside >> length;
  const bool initial = inside == 0 && outside == 0 && length == UINT32_MAX;
  if (::geteuid() == nobody && !initial) {
    GLOO_THROW_IO_EXCEPTION(
        "this process runs as user ", nobody,
        " in a user namespace, where that number stands for many users:"
        " whose memory it would share cannot be checked");
  }
}

}  // namespace

Endpoint::Endpoint() : name_(makeSecret()), listener_(makeSocket()) {
  checkUser();
  const Name name(name_);
  if (::bind(listener_.get(), name.get(), name.length) != 0 ||
      ::listen(listener_.get(), SOMAXCONN) != 0) {
    const int error = errno;
    GLOO_THROW_IO_EXCEPTION("cannot listen on an abstract Unix socket: ",
                            base::errnoText(error), base::errnoRemedy(error));
  }
}

Handover Endpoint::take(const Secret& token) {
  // Where descriptors have run out: what has come before needs none.
  std::exception_ptr trouble;
  try {
    acceptAll();
  } catch (const IoException&) {
    trouble = std::current_exception();
  }
  receiveAll();
  const auto found = std::find_if(
      waiting_.begin(), waiting_.end(), [&](const Waiting& waiting) {
        return waiting.complete && waiting.token == token;
      });
  if (found == waiting_.end()) {
    if (trouble != nullptr) {
      std::rethrow_exception(trouble);
    }
    GLOO_THROW_IO_EXCEPTION(
        "the peer has not handed over the shared memory that it announced"
        " (is it of another user, or out of descriptors, ulimit -n?)");
  }
  Handover handover = std::move(found->handover);
  waiting_.erase(found);
  return handover;
}

void Endpoint::collect(Clock::time_point now) noexcept {
  try {
    acceptAll();
    receiveAll();
  } catch (const std::exception&) {
    // Who takes what is there will say so.
  }
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    return now >= waiting.since + kKept;
  });
}

void Endpoint::drop(const Secret& token) noexcept {
  collect();
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    return waiting.complete && waiting.token == token;
  });
}

void Endpoint::dropAllOf(uint64_t half) noexcept {
  collect();
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    return waiting.complete && std::memcmp(waiting.token.data() + sizeof(half),
                                           &half, sizeof(half)) == 0;
  });
}

std::optional<Endpoint::Clock::time_point> Endpoint::nextCollection() const {
  if (waiting_.empty()) {
    return std::nullopt;
  }
  return waiting_.front().since + kKept;  // they wait in their order
}

void Endpoint::acceptAll() {
  for (;;) {
    base::UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr,
                                    SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      const int error = errno;
      if (error == EMFILE || error == ENFILE || error == ENOBUFS ||
          error == ENOMEM) {
        GLOO_THROW_IO_EXCEPTION(
            "cannot accept shared memory: ", base::errnoText(error),
            base::errnoRemedy(error));
      }
      if (error == EINTR || error == ECONNABORTED) {
        continue;
      }
      return;
    }
    Waiting waiting;
    if (ours(socket.get(), &waiting.handover.pid)) {
      waiting.handover.socket = std::move(socket);
      waiting_.push_back(std::move(waiting));
    }
    if (waiting_.size() > kMostWaiting) {
      waiting_.erase(waiting_.begin());
    }
  }
}

// What comes again takes the place of what has come.
void Endpoint::receiveAll() {
  for (size_t i = 0; i < waiting_.size(); i++) {
    if (waiting_[i].complete) {
      continue;
    }
    if (!receive(waiting_[i])) {
      waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i--));
      continue;
    }
    const auto before = std::find_if(
        waiting_.begin(), waiting_.end(), [&](const Waiting& waiting) {
          return waiting.complete && &waiting != &waiting_[i] &&
                 waiting.token == waiting_[i].token;
        });
    if (waiting_[i].complete && before != waiting_.end()) {
      std::swap(before->handover, waiting_[i].handover);
      waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i--));
    }
  }
}

// False: nothing will come of it.
bool Endpoint::receive(Waiting& waiting) {
  const ssize_t n = receiveDescriptor(waiting.handover.socket.get(),
                                      waiting.token, waiting.handover.memory);
  if (n < 0) {
    return base::mayTryAgain(errno);
  }
  waiting.complete = n == static_cast<ssize_t>(waiting.token.size()) &&
                     static_cast<bool>(waiting.handover.memory);
  return waiting.complete;
}

Handover dial(const Secret& name) {
  Handover result;
  result.socket = makeSocket();
  const Name to(name);
  if (::connect(result.socket.get(), to.get(), to.length) != 0) {
    const int error = errno;
    if (error == EAGAIN) {
      throw base::NotNowException(
          "no shared memory with the caller yet: too many connections to its "
          "Unix socket wait to be accepted");
    }
    GLOO_THROW_IO_EXCEPTION(
        "no shared memory with the caller: its Unix socket: ",
        base::errnoText(error),
        " (is it on another host or in another network namespace?)");
  }
  if (!ours(result.socket.get(), &result.pid)) {
    GLOO_THROW_IO_EXCEPTION(
        "no shared memory with the caller: it is of another user");
  }
  return result;
}

void handOver(const Handover& to, const Secret& token, int memory) {
  if (sendDescriptor(to.socket.get(), token, memory) !=
      static_cast<ssize_t>(token.size())) {
    const int error = errno;
    const std::string why =
        MakeString("cannot hand over shared memory: ", base::errnoText(error),
                   base::errnoRemedy(error));
    if (error == ETOOMANYREFS) {
      throw base::NotNowException(why);
    }
    throw IoException(why);
  }
}

}  // namespace transport::shm
GLOO_NAMESPACE_END
