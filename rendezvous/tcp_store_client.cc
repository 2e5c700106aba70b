#include <atomic>

#include "gloo/common/error.h"
#include "gloo/internal/require_timeout.h"
#include "gloo/rendezvous/tcp_store.h"
#include "rendezvous/bytes.h"
#include "rendezvous/operation_deadline.h"
#include "rendezvous/retry.h"
#include "rendezvous/tcp_store_wire.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

namespace {

using std::chrono::milliseconds;
using tcpstore::kHeaderBytes;
using tcpstore::Op;
using tcpstore::Request;

// One TCP connection; one request at a time.
class Connection {
 public:
  explicit Connection(UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }

  // The answer's body. Throws TransientError when the connection is lost, and
  // IoException with the server's text or when it is no TCP store.
  std::vector<char> call(const Request& request, Deadline deadline) {
    const uint32_t id = nextId_++;
    sendAll(fd(),
            tcpstore::encodeFrame(static_cast<uint8_t>(request.op), id,
                                  tcpstore::encodeRequest(request)),
            deadline);
    char bytes[kHeaderBytes];
    receive(bytes, deadline);
    const auto header =
        tcpstore::decodeHeader(bytes, tcpstore::kMaxAnswerBytes);
    if (!header || header->id != id) {
      throw IoException("the answer is not a TCP store's; is the port right?");
    }
    std::vector<char> body(header->bodyBytes);
    receive(body, deadline);
    if (header->op != static_cast<uint8_t>(tcpstore::Status::kOk)) {
      throw IoException(toString(body));
    }
    return body;
  }

 private:
  void receive(std::span<char> bytes, Deadline deadline) {
    while (!bytes.empty()) {
      bytes = bytes.subspan(recvSome(fd(), bytes, deadline));
    }
  }

  UniqueFd fd_;
  uint32_t nextId_ = 1;
};

bool repeatable(Op op) { return op != Op::kAppend && op != Op::kAdd; }

}  // namespace

class TcpStore::Impl {
 public:
  Impl(const std::string& host, int port) : host_(host), port_(port) {}

  std::string str() const {
    return MakeString("TCP store ", host_, ":", port_);
  }

  void connect(Deadline deadline) {
    retryUntil(deadline, "cannot reach the " + str(),
               "; rank 0 serves it: does it run, and is this its address?",
               [&] { pool_.giveBack(open(deadline)); });
  }

  std::vector<char> call(const Request& request, Deadline deadline) {
    checkLimits(request);
    return retry(deadline, [&] { return callOnce(request, deadline); });
  }

  // The server answers in time; a client gives it a little longer.
  bool waitAny(const std::vector<std::string>& keys, Deadline deadline) {
    Request request;
    request.op = Op::kWaitAny;
    request.keys = keys;
    checkLimits(request);
    const Deadline last =
        deadline.never() ? deadline : Deadline(deadline.at() + kGrace);
    for (;;) {
      const auto body = retry(last, [&] {
        // Anew for each try: a server that was restarted is asked to wait for
        // what is left.
        const milliseconds slice = std::min(deadline.left(), kSlice);
        request.milliseconds = static_cast<uint32_t>(slice.count());
        return callOnce(
            request, Deadline(std::min(
                         last.at(), Deadline::Clock::now() + slice + kGrace)));
      });
      if (ByteReader(body).u8() != 0) {
        return true;
      }
      if (deadline.expired()) {
        return false;
      }
    }
  }

 private:
  // One request to wait.
  static constexpr milliseconds kSlice = std::chrono::minutes(1);
  static constexpr milliseconds kGrace = std::chrono::seconds(1);

  template <typename Attempt>
  std::vector<char> retry(Deadline deadline, const Attempt& attempt) const {
    return retryUntil(deadline, str(), "; rank 0 serves it: has it ended?",
                      attempt);
  }

  std::unique_ptr<Connection> open(Deadline deadline) {
    // A lost SYN must not cost the whole time.
    const Deadline attempt(std::min(
        deadline.at(), Deadline::Clock::now() + std::chrono::seconds(3)));
    return std::make_unique<Connection>(connectTcp(host_, port_, attempt));
  }

  std::vector<char> callOnce(const Request& request, Deadline deadline) {
    auto connection = pool_.take();
    if (connection == nullptr) {
      connection = open(deadline);
    }
    try {
      auto body = connection->call(request, deadline);
      pool_.giveBack(std::move(connection));
      return body;
    } catch (const TransientError& error) {
      if (repeatable(request.op)) {
        throw;
      }
      throw IoException(MakeString(str(), ": ", error.what(), "; whether ",
                                   request.op == Op::kAdd ? "add" : "append",
                                   " to key ", request.keys[0],
                                   " took place is not known"));
    } catch (const IoException& error) {
      throw IoException(MakeString(str(), ": ", error.what()));
    }
  }

  void checkLimits(const Request& request) const {
    if (request.keys.size() > TcpStoreServer::kMaxRequestKeys) {
      throw InvalidOperationException(
          MakeString(str(), ": a request with ", request.keys.size(),
                     " keys has more than ", TcpStoreServer::kMaxRequestKeys,
                     "; ask for them in parts"));
    }
    size_t bytes = kHeaderBytes;
    for (const auto& key : request.keys) {
      if (key.size() > TcpStoreServer::kMaxKeyBytes) {
        throw InvalidOperationException(
            MakeString(str(), ": a key of ", key.size(),
                       " bytes is longer than ", TcpStoreServer::kMaxKeyBytes));
      }
      bytes += key.size() + 2 * sizeof(uint32_t);
    }
    for (const auto& value : request.values) {
      bytes += value.size();
    }
    if (bytes > TcpStoreServer::kMaxRequestBytes) {
      throw InvalidOperationException(
          MakeString(str(), ": a request of ", bytes, " bytes is larger than ",
                     TcpStoreServer::kMaxRequestBytes));
    }
  }

  const std::string host_;
  const int port_;
  ConnectionPool<Connection> pool_;
};

TcpStore::TcpStore(const std::string& host, int port,
                   milliseconds connectTimeout)
    : impl_(std::make_unique<Impl>(host, port)) {
  internal::requireTimeout(connectTimeout);
  impl_->connect(Deadline::after(connectTimeout));
}

TcpStore::~TcpStore() = default;

std::string TcpStore::str() const { return impl_->str(); }

void TcpStore::set(const std::string& key, const std::vector<char>& data) {
  multi_set({key}, {data});
}

void TcpStore::multi_set(const std::vector<std::string>& keys,
                         const std::vector<std::vector<char>>& values) {
  if (keys.size() != values.size()) {
    throw InvalidOperationException(MakeString(
        "multi_set: ", keys.size(), " keys but ", values.size(), " values"));
  }
  Request request;
  request.op = Op::kSet;
  request.keys = keys;
  request.values = values;
  impl_->call(request, operationDeadline());
}

void TcpStore::append(const std::string& key, const std::vector<char>& value) {
  Request request;
  request.op = Op::kAppend;
  request.keys = {key};
  request.values = {value};
  impl_->call(request, operationDeadline());
}

int64_t TcpStore::add(const std::string& key, int64_t value) {
  Request request;
  request.op = Op::kAdd;
  request.keys = {key};
  request.increment = value;
  const auto body = impl_->call(request, operationDeadline());
  return static_cast<int64_t>(ByteReader(body).u64());
}

std::vector<std::optional<std::vector<char>>> TcpStore::peek(
    const std::vector<std::string>& keys) {
  Request request;
  request.op = Op::kPeek;
  request.keys = keys;
  const auto body = impl_->call(request, operationDeadline());
  ByteReader in(body);
  std::vector<std::optional<std::vector<char>>> found(keys.size());
  for (auto& value : found) {
    const bool exists = in.u8() != 0;
    const auto bytes = in.text();
    if (exists) {
      value = toVector(bytes);
    }
  }
  if (!in.ok() || in.left() != 0) {
    throw IoException(MakeString(str(), ": the answer is malformed"));
  }
  return found;
}

bool TcpStore::wait_any(const std::vector<std::string>& keys,
                        Deadline deadline) {
  return impl_->waitAny(keys, deadline);
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
