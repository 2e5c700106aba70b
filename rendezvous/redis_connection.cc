#include "rendezvous/redis_connection.h"

#include <poll.h>

#include "gloo/common/error.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

namespace {

void appendCommand(std::string& out, const Command& command) {
  std::vector<const char*> words;
  std::vector<size_t> lengths;
  for (const auto& word : command) {
    words.push_back(word.data());
    lengths.push_back(word.size());
  }
  char* text = nullptr;
  const auto length = redisFormatCommandArgv(
      &text, static_cast<int>(command.size()), words.data(), lengths.data());
  if (length < 0) {
    throw IoException("Redis: out of memory");
  }
  out.append(text, static_cast<size_t>(length));
  redisFreeCommand(text);
}

UniqueFd connectTo(const RedisOptions& options, Deadline deadline) {
  return options.unixSocket.empty()
             ? connectTcp(options.host, options.port, deadline)
             : connectUnix(options.unixSocket, deadline);
}

bool startsWith(const std::string& text, const char* word) {
  return text.rfind(word, 0) == 0;
}

}  // namespace

void checkReply(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ERROR) {
    return;
  }
  const std::string text(reply.str, reply.len);
  for (const char* word : {"LOADING", "BUSY", "MASTERDOWN", "TRYAGAIN"}) {
    if (startsWith(text, word)) {
      throw TransientError(text);
    }
  }
  if (startsWith(text, "NOAUTH") || startsWith(text, "WRONGPASS") ||
      startsWith(text, "ERR invalid password") ||
      startsWith(text, "ERR AUTH") ||
      startsWith(text, "ERR Client sent AUTH")) {
    throw IoException(MakeString(
        text, "; give the right user and password: redis://user:password@..."));
  }
  if (startsWith(text, "ERR Protocol error")) {
    throw IoException(MakeString(
        text,
        "; is a value longer than the server's proto-max-bulk-len (512 MB "
        "unless configured)?"));
  }
  throw IoException(text);
}

RedisConnection::RedisConnection(const RedisOptions& options, Deadline deadline)
    : fd_(connectTo(options, deadline)), reader_(redisReaderCreate()) {
  if (reader_ == nullptr) {
    throw IoException("Redis: out of memory");
  }
  logIn(options, deadline);
}

RedisConnection::~RedisConnection() = default;

void RedisConnection::logIn(const RedisOptions& options, Deadline deadline) {
  std::vector<Command> commands;
  if (!options.user.empty()) {
    commands.push_back({"AUTH", options.user, options.password});
  } else if (!options.password.empty()) {
    commands.push_back({"AUTH", options.password});
  }
  // Tells a Redis that wants no password, or a server that is none.
  commands.push_back({"PING"});
  send(commands, deadline);
  for (size_t i = 0; i < commands.size(); i++) {
    checkReply(*receive(deadline));
  }
}

void RedisConnection::send(const std::vector<Command>& commands,
                           Deadline deadline) {
  std::string text;
  for (const auto& command : commands) {
    appendCommand(text, command);
  }
  try {
    sendAll(fd(), text, deadline);
  } catch (const TransientError&) {
    // A server that will not read on says why before it hangs up, and would
    // not read the same on another connection: receive() tells.
    if (!hasSpoken()) {
      throw;
    }
  }
}

bool RedisConnection::hasSpoken() {
  try {
    feed(Deadline(Deadline::Clock::now()));
    return true;
  } catch (const TransientError&) {
    return false;
  }
}

void RedisConnection::feed(Deadline deadline) {
  char bytes[16384];
  const size_t got = recvSome(fd(), bytes, deadline);
  if (redisReaderFeed(reader_.get(), bytes, got) != REDIS_OK) {
    throw IoException("Redis: out of memory");
  }
}

Reply RedisConnection::receiveBuffered() {
  void* reply = nullptr;
  if (redisReaderGetReply(reader_.get(), &reply) != REDIS_OK) {
    throw IoException(
        MakeString("this is not a Redis server: ", reader_->errstr));
  }
  return Reply(static_cast<redisReply*>(reply));
}

Reply RedisConnection::receiveUntil(Deadline until) {
  for (;;) {
    if (Reply reply = receiveBuffered()) {
      return reply;
    }
    if (!pollUntil(fd(), POLLIN, until)) {
      return nullptr;
    }
    feed(until);
  }
}

Reply RedisConnection::receive(Deadline deadline) {
  for (;;) {
    if (Reply reply = receiveBuffered()) {
      return reply;
    }
    feed(deadline);
  }
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
