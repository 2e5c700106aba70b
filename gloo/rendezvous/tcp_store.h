// A store that one process of the job serves over TCP, so that several hosts
// need neither Redis nor a shared file system.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "gloo/rendezvous/store.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// Serves one store from a thread that sleeps in the kernel while nobody calls.
// Foreign or oversized input costs its sender the connection and nobody else
// anything. Thread-safe. There is no authentication: use it inside a trusted
// network.
class GLOO_API TcpStoreServer {
 public:
  // Bytes of all keys and values together, with kEntryBytes more for each key;
  // of one request, and of one key. Keys of one request.
  static constexpr size_t kMaxStoredBytes = size_t{256} << 20;
  static constexpr size_t kEntryBytes = 128;
  static constexpr size_t kMaxRequestBytes = size_t{16} << 20;
  static constexpr size_t kMaxKeyBytes = size_t{4} << 10;
  static constexpr size_t kMaxRequestKeys = size_t{64} << 10;
  // Bytes of all requests that have come in part, of waits, and of answers that
  // their clients have not read: beyond, the client with most of them loses its
  // connection.
  static constexpr size_t kMaxHeldBytes = size_t{512} << 20;

  // An address or "localhost" is bound alone; a host name, or an empty one,
  // binds all interfaces, as a name may mean another address elsewhere. Port
  // 0: the system chooses. IoException when the port is taken.
  TcpStoreServer(const std::string& host, int port);
  ~TcpStoreServer();  // drops all clients

  int port() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

// The client. A lost connection is made again, with growing pauses, until the
// call's time is over; waits survive a restart of the server. append and add
// are not repeated when the connection broke after they were sent. Thread-safe.
class GLOO_API TcpStore : public PeekableStore {
 public:
  // Waits for the server for at most connectTimeout: it may start later.
  TcpStore(const std::string& host, int port,
           std::chrono::milliseconds connectTimeout = kDefaultTimeout);
  ~TcpStore() override;

  void set(const std::string& key, const std::vector<char>& data) override;
  void multi_set(const std::vector<std::string>& keys,
                 const std::vector<std::vector<char>>& values) override;
  void append(const std::string& key, const std::vector<char>& value) override;
  int64_t add(const std::string& key, int64_t value) override;

  std::vector<std::optional<std::vector<char>>> peek(
      const std::vector<std::string>& keys) override;
  bool wait_any(const std::vector<std::string>& keys,
                Deadline deadline) override;
  std::string str() const override;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace rendezvous
GLOO_NAMESPACE_END
