#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <thread>
#include <unordered_map>

#include "gloo/common/error.h"
#include "gloo/internal/thread.h"
#include "gloo/rendezvous/tcp_store.h"
#include "rendezvous/bytes.h"
#include "rendezvous/decimal.h"
#include "rendezvous/socket.h"
#include "rendezvous/tcp_store_session.h"
#include "rendezvous/tcp_store_values.h"
#include "rendezvous/tcp_store_wire.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

namespace {

using tcpstore::kHeaderBytes;
using tcpstore::Op;
using tcpstore::Request;
using Client = tcpstore::Session;
using tcpstore::Status;

}  // namespace

// Everything but stop() runs on the server's thread.
class TcpStoreServer::Impl {
 public:
  Impl(const std::string& host, int port)
      : listener_(listenTcp(host, port)),
        port_(localPort(listener_.get())),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)),
        stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        process_(::getpid()) {
    if (!epoll_ || !stop_) {
      throw IoException(
          MakeString("TCP store: ", errnoText(errno), "; see ulimit -n"));
    }
    watch(listener_.get(), EPOLLIN, EPOLL_CTL_ADD);
    watch(stop_.get(), EPOLLIN, EPOLL_CTL_ADD);
    thread_ =
        std::make_unique<std::thread>(internal::startThread([this] { run(); }));
  }

  ~Impl() {
    if (::getpid() != process_) {
      // In a forked child there is no thread to end.
      static_cast<void>(thread_.release());
      return;
    }
    const uint64_t one = 1;
    static_cast<void>(!::write(stop_.get(), &one, sizeof one));
    thread_->join();
  }

  int port() const { return port_; }

 private:
  static constexpr size_t kMaxClients = 65536;

  void watch(int fd, uint32_t events, int operation) {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    ::epoll_ctl(epoll_.get(), operation, fd, &event);
  }

  void run() {
    epoll_event events[64];
    for (;;) {
      const int count = ::epoll_wait(
          epoll_.get(), events, 64,
          waitingUntil_.never() ? -1 : pollMilliseconds(waitingUntil_, 60000));
      for (int i = 0; i < count; i++) {
        if (events[i].data.fd == stop_.get()) {
          return;
        }
        orDrop(events[i].data.fd,
               [&] { onEvent(events[i].data.fd, events[i].events); });
        limitHeld();
      }
      expireWaits();
    }
  }

  void count(Client& client) {
    held_ -= client.counted;
    client.counted = client.heldBytes();
    held_ += client.counted;
  }

  // Whoever does not read its answers, or send the rest of its requests, must
  // not cost the others the server.
  void limitHeld() {
    while (held_ > kMaxHeldBytes) {
      const auto most = std::max_element(
          clients_.begin(), clients_.end(), [](const auto& a, const auto& b) {
            return a.second.counted < b.second.counted;
          });
      drop(most->first);
    }
  }

  // Out of memory for this client: the others go on.
  template <typename Call>
  void orDrop(int fd, const Call& call) {
    try {
      call();
    } catch (const std::exception&) {
      drop(fd);
    }
  }

  void onEvent(int fd, uint32_t events) {
    if (fd == listener_.get()) {
      acceptAll();
      return;
    }
    const auto found = clients_.find(fd);
    if (found == clients_.end()) {
      return;
    }
    Client& client = found->second;
    if ((events & EPOLLIN) != 0 && !client.closing && !readFrom(client)) {
      drop(fd);
    } else if ((events & (EPOLLERR | EPOLLHUP)) != 0 || !flush(client)) {
      drop(fd);
    }
  }

  void acceptAll() {
    for (;;) {
      UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr,
                            SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
            errno == ENOBUFS) {
          pauseAccepting();
        }
        return;
      }
      if (clients_.size() >= kMaxClients) {
        continue;
      }
      const int number = fd.get();
      setKeepAlive(number);
      clients_[number].fd = std::move(fd);
      watch(number, EPOLLIN, EPOLL_CTL_ADD);
    }
  }

  // Without a free descriptor, accept would fail, and epoll report, for ever.
  void pauseAccepting() {
    watch(listener_.get(), 0, EPOLL_CTL_MOD);
    paused_ = true;
    waitingUntil_ = Deadline::after(std::chrono::milliseconds(50));
  }

  bool readFrom(Client& client) {
    char bytes[16384];
    const ssize_t got = ::recv(client.fd.get(), bytes, sizeof bytes, 0);
    if (got <= 0) {
      return got < 0 && (errno == EAGAIN || errno == EINTR);
    }
    client.in.insert(client.in.end(), bytes, bytes + got);
    size_t used = 0;
    while (client.in.size() - used >= kHeaderBytes && !client.closing) {
      const std::span<const char> rest(client.in.data() + used,
                                       client.in.size() - used);
      const auto header = tcpstore::decodeHeader(rest, kMaxRequestBytes);
      if (!header || client.waiting || !client.out.empty()) {
        return false;  // garbage, or a second request before the answer
      }
      if (rest.size() < kHeaderBytes + header->bodyBytes) {
        break;
      }
      onRequest(client, *header, rest.subspan(kHeaderBytes, header->bodyBytes));
      used += kHeaderBytes + header->bodyBytes;
    }
    if (used > 0) {  // anew: erase() would keep the memory
      client.in = std::vector<char>(
          client.in.begin() + static_cast<ptrdiff_t>(used), client.in.end());
    }
    count(client);
    return true;
  }

  void onRequest(Client& client, const tcpstore::Header& header,
                 std::span<const char> body) {
    client.id = header.id;
    std::string why;
    if (header.version != tcpstore::kVersion) {
      refuse(client,
             MakeString("the server speaks version ", int{tcpstore::kVersion},
                        ", this client ", int{header.version},
                        "; use one release on all ranks"));
      return;
    }
    auto request = tcpstore::decodeRequest(header.op, body, &why);
    if (!request) {
      refuse(client, why);
      return;
    }
    try {
      execute(client, *request);
    } catch (const Exception& error) {
      answer(client, Status::kError, std::string(error.what()));
    }
  }

  void refuse(Client& client, const std::string& why) {
    client.closing = true;
    answer(client, Status::kError, why);
  }

  void execute(Client& client, Request& request) {
    std::vector<char> body;
    switch (request.op) {
      case Op::kSet:
        for (size_t i = 0; i < request.keys.size(); i++) {
          store(request.keys[i], std::move(request.values[i]));
        }
        break;
      case Op::kAppend:
        values_.append(request.keys[0], request.values[0]);
        wake(request.keys[0]);
        break;
      case Op::kAdd: {
        const int64_t sum = sumOfDecimal(values_.at(request.keys[0]),
                                         request.increment, request.keys[0]);
        const std::string text = std::to_string(sum);
        store(request.keys[0], {text.begin(), text.end()});
        ByteWriter(body).u64(static_cast<uint64_t>(sum));
        break;
      }
      case Op::kPeek:
        body = values_.peek(request.keys);
        break;
      case Op::kWaitAny:
        wait(client, request);
        return;
    }
    answer(client, Status::kOk, body);
  }

  void store(const std::string& key, std::vector<char> value) {
    values_.set(key, std::move(value));
    wake(key);
  }

  void wake(const std::string& key) {
    const auto waiting = waiters_.find(key);
    if (waiting != waiters_.end()) {
      for (const int fd : std::set<int>(waiting->second)) {
        orDrop(fd, [&] { endWait(clients_.at(fd), true); });
      }
    }
  }

  void wait(Client& client, Request& request) {
    client.waiting = true;
    client.keys = std::move(request.keys);
    bool exists = false;
    for (const auto& key : client.keys) {
      waiters_[key].insert(client.fd.get());
      exists = exists || values_.has(key);
    }
    client.deadline = Deadline(Deadline::Clock::now() +
                               std::chrono::milliseconds(request.milliseconds));
    if (exists || request.milliseconds == 0) {
      endWait(client, exists);
    } else if (client.deadline.at() < waitingUntil_.at()) {
      waitingUntil_ = client.deadline;
    }
  }

  void forgetWait(Client& client) {
    for (const auto& key : client.keys) {
      const auto found = waiters_.find(key);
      if (found != waiters_.end() && found->second.erase(client.fd.get()) > 0 &&
          found->second.empty()) {
        waiters_.erase(found);
      }
    }
    client.keys = std::vector<std::string>();  // returns the memory
    client.waiting = false;
  }

  void endWait(Client& client, bool exists) {
    forgetWait(client);
    answer(client, Status::kOk, std::vector<char>{exists ? '\1' : '\0'});
  }

  void expireWaits() {
    if (!waitingUntil_.expired()) {
      return;
    }
    if (paused_) {
      paused_ = false;
      watch(listener_.get(), EPOLLIN, EPOLL_CTL_MOD);
    }
    waitingUntil_ = Deadline();
    for (auto next = clients_.begin(); next != clients_.end();) {
      const int fd = next->first;
      Client& client = next->second;
      next++;  // it may be dropped
      if (client.waiting && client.deadline.expired()) {
        orDrop(fd, [&] { endWait(client, false); });
      } else if (client.waiting && client.deadline.at() < waitingUntil_.at()) {
        waitingUntil_ = client.deadline;
      }
    }
  }

  template <typename Bytes>
  void answer(Client& client, Status status, const Bytes& body) {
    client.out =
        tcpstore::encodeFrame(static_cast<uint8_t>(status), client.id, body);
    client.sent = 0;
    flush(client);
  }

  // false: the connection is of no use any more.
  bool flush(Client& client) {
    const bool usable = client.send();
    count(client);
    if (usable && !client.closing) {
      setWriting(client, !client.out.empty());
      return true;
    }
    return false;
  }

  void setWriting(Client& client, bool writing) {
    if (client.writing != writing) {
      client.writing = writing;
      watch(client.fd.get(), writing ? EPOLLIN | EPOLLOUT : EPOLLIN,
            EPOLL_CTL_MOD);
    }
  }

  void drop(int fd) {
    const auto found = clients_.find(fd);
    if (found != clients_.end()) {
      forgetWait(found->second);
      held_ -= found->second.counted;
      clients_.erase(found);  // closing takes it out of epoll
    }
  }

  UniqueFd listener_;
  const int port_;
  UniqueFd epoll_;
  UniqueFd stop_;
  const int process_;
  std::map<int, Client> clients_;
  size_t held_ = 0;  // by all of them
  tcpstore::Values values_;
  std::unordered_map<std::string, std::set<int>> waiters_;  // of a key
  Deadline waitingUntil_;  // not later than the first wait's deadline
  bool paused_ = false;    // accepting
  std::unique_ptr<std::thread> thread_;
};

TcpStoreServer::TcpStoreServer(const std::string& host, int port)
    : impl_(std::make_unique<Impl>(host, port)) {}

TcpStoreServer::~TcpStoreServer() = default;

int TcpStoreServer::port() const { return impl_->port(); }

}  // namespace rendezvous
GLOO_NAMESPACE_END
