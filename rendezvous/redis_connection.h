// One connection to a Redis server: hiredis writes and parses the protocol,
// the socket is ours (hiredis would raise SIGPIPE and know no deadlines).
#pragma once

#include <hiredis/hiredis.h>

#include <memory>
#include <string>
#include <vector>

#include "gloo/rendezvous/redis_store.h"
#include "rendezvous/socket.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

struct ReplyFree {
  void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, ReplyFree>;

// Words of one command; any bytes.
using Command = std::vector<std::string>;

// One thread at a time.
class RedisConnection {
 public:
  // Connects and logs in. Throws TransientError when trying again may help
  // (nobody there, still loading), IoException when not (wrong password).
  RedisConnection(const RedisOptions& options, Deadline deadline);
  ~RedisConnection();

  int fd() const { return fd_.get(); }

  // Succeeds, too, where the server has hung up and said why: receive() tells.
  void send(const std::vector<Command>& commands, Deadline deadline);
  // The next reply, which may be an error's.
  Reply receive(Deadline deadline);
  // Null where none has come until then; a part of one is kept.
  Reply receiveUntil(Deadline until);

 private:
  Reply receiveBuffered();
  void logIn(const RedisOptions& options, Deadline deadline);
  void feed(Deadline deadline);
  bool hasSpoken();

  struct ReaderFree {
    void operator()(redisReader* reader) const noexcept {
      redisReaderFree(reader);
    }
  };
  UniqueFd fd_;
  const std::unique_ptr<redisReader, ReaderFree> reader_;
};

// Throws for an error reply: TransientError while the server is loading or
// busy, IoException otherwise.
void checkReply(const redisReply& reply);

}  // namespace rendezvous
GLOO_NAMESPACE_END
