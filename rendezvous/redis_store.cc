#include "gloo/rendezvous/redis_store.h"

#include <algorithm>
#include <unordered_set>

#include "gloo/common/error.h"
#include "gloo/internal/require_timeout.h"
#include "rendezvous/operation_deadline.h"
#include "rendezvous/redis_connection.h"
#include "rendezvous/retry.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

namespace {

using std::chrono::milliseconds;

// What is set is published here, so that waiting costs nothing.
constexpr char kChannel[] = "gloo:set";

std::string toText(const std::vector<char>& bytes) {
  return {bytes.begin(), bytes.end()};
}

Command commandOf(const char* verb, const std::vector<std::string>& keys) {
  Command command{verb};
  command.insert(command.end(), keys.begin(), keys.end());
  return command;
}

}  // namespace

class RedisStore::Impl {
 public:
  explicit Impl(const RedisOptions& options) : options_(options) {}

  std::string str() const {
    return options_.unixSocket.empty()
               ? MakeString("Redis at ", options_.host, ":", options_.port)
               : MakeString("Redis at ", options_.unixSocket);
  }

  void connect() {
    internal::requireTimeout(options_.connectTimeout);
    const Deadline deadline = Deadline::after(options_.connectTimeout);
    retryUntil(deadline, "cannot reach " + str(),
               "; does the server run, and is this its address?",
               [&] { pool_.giveBack(open(deadline)); });
  }

  // Sends the first command, and the publications, together. The reply of the
  // first.
  Reply write(const Command& command, const std::vector<std::string>& keys,
              bool repeatable) {
    std::vector<Command> commands{command};
    for (const auto& key : keys) {
      commands.push_back({"PUBLISH", kChannel, key});
    }
    return call(commands, operationDeadline(), repeatable);
  }

  Reply read(const Command& command, Deadline deadline) {
    return call({command}, deadline, true);
  }

  // Of the keys that are there and are strings.
  std::vector<std::optional<std::vector<char>>> strings(
      const std::vector<std::string>& keys) {
    const Reply reply = read(commandOf("MGET", keys), operationDeadline());
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != keys.size()) {
      throw IoException(MakeString(str(), ": the answer to MGET is malformed"));
    }
    std::vector<std::optional<std::vector<char>>> found(keys.size());
    for (size_t i = 0; i < keys.size(); i++) {
      const redisReply& value = *reply->element[i];
      if (value.type == REDIS_REPLY_STRING) {
        found[i].emplace(value.str, value.str + value.len);
      }
    }
    return found;
  }

  bool exist(const std::vector<std::string>& keys) {
    return read(commandOf("EXISTS", keys), operationDeadline())->integer > 0;
  }

  // Of those that are there and are no strings.
  void checkTypes(const std::vector<std::string>& keys) {
    for (const auto& key : keys) {
      const Reply type = read({"TYPE", key}, operationDeadline());
      const std::string name(type->str, type->len);
      if (name != "none" && name != "string") {
        throw IoException(
            MakeString(str(), ": WRONGTYPE: key ", key, " holds a ", name,
                       ", not a string; another program uses it: delete it, or "
                       "choose another prefix"));
      }
    }
  }

  // A wait may be shorter than what a slow server takes to answer: that gets a
  // little longer, and the answer is whether a key exists, not an error.
  bool waitAny(const std::vector<std::string>& keys, Deadline deadline) {
    const std::unordered_set<std::string> wanted(keys.begin(), keys.end());
    const Command exists = commandOf("EXISTS", keys);
    const Deadline answer =
        deadline.never() ? deadline : Deadline(deadline.at() + kGrace);
    for (;;) {
      std::unique_ptr<RedisConnection> listener = subscribe(answer);
      // Look after each (re)subscription and from time to time: a program
      // other than this library publishes nothing.
      for (;;) {
        const bool last = deadline.expired();
        const bool found = read(exists, answer)->integer > 0;
        if (found || last) {
          if (listener != nullptr) {
            listeners_.giveBack(std::move(listener));
          }
          return found;
        }
        if (!listen(listener, wanted, deadline)) {
          break;
        }
      }
    }
  }

 private:
  static constexpr milliseconds kLook{250};
  // Without the right to subscribe.
  static constexpr milliseconds kBlindLook{10};
  static constexpr milliseconds kGrace{800};

  std::unique_ptr<RedisConnection> open(Deadline deadline) {
    const Deadline attempt(std::min(
        deadline.at(), Deadline::Clock::now() + std::chrono::seconds(3)));
    try {
      return std::make_unique<RedisConnection>(options_, attempt);
    } catch (const TransientError&) {
      throw;
    } catch (const IoException& error) {
      throw IoException(MakeString(str(), ": ", error.what()));
    }
  }

  Reply call(const std::vector<Command>& commands, Deadline deadline,
             bool repeatable) {
    return retryUntil(deadline, str(), "; is the server still there?",
                      [&] { return callOnce(commands, deadline, repeatable); });
  }

  Reply callOnce(const std::vector<Command>& commands, Deadline deadline,
                 bool repeatable) {
    auto connection = pool_.take();
    if (connection == nullptr) {
      connection = open(deadline);
    }
    Reply first;
    try {
      connection->send(commands, deadline);
      first = connection->receive(deadline);
    } catch (const TransientError& error) {
      if (repeatable) {
        throw;
      }
      throw IoException(MakeString(str(), ": ", error.what(), "; whether ",
                                   commands[0][0], " of key ", commands[0][1],
                                   " took place is not known"));
    }
    try {
      checkReply(*first);
    } catch (const TransientError&) {
      throw;
    } catch (const IoException& error) {
      throw IoException(
          MakeString(str(), ": ", commands[0][0], ": ", error.what()));
    }
    try {
      for (size_t i = 1; i < commands.size(); i++) {
        connection->receive(deadline);  // a refused PUBLISH only costs time
      }
      pool_.giveBack(std::move(connection));
    } catch (const TransientError&) {
      // The command took place; whoever waits for the key looks by itself.
    }
    return first;
  }

  // Forgets what a subscription has heard while nobody waited. false: it has
  // ended, also for a forked child.
  static bool hearOut(RedisConnection& listener) {
    try {
      const Deadline now(Deadline::Clock::now());
      while (listener.fd() >= 0 && listener.receiveUntil(now) != nullptr) {
      }
      return listener.fd() >= 0;
    } catch (const IoException&) {
      return false;
    }
  }

  // Null: this user may not subscribe.
  std::unique_ptr<RedisConnection> subscribe(Deadline deadline) {
    if (auto idle = listeners_.takeIf(&hearOut)) {
      return idle;
    }
    return retryUntil(deadline, str(), "; is the server still there?",
                      [&]() -> std::unique_ptr<RedisConnection> {
                        auto connection = open(deadline);
                        connection->send({{"SUBSCRIBE", kChannel}}, deadline);
                        const Reply reply = connection->receive(deadline);
                        if (reply->type == REDIS_REPLY_ERROR) {
                          return nullptr;
                        }
                        return connection;
                      });
  }

  // true: look again. false: the subscription is lost.
  bool listen(const std::unique_ptr<RedisConnection>& listener,
              const std::unordered_set<std::string>& wanted,
              Deadline deadline) {
    const auto now = Deadline::Clock::now();
    if (listener == nullptr) {
      std::this_thread::sleep_until(std::min(deadline.at(), now + kBlindLook));
      return true;
    }
    const Deadline until(std::min(deadline.at(), now + kLook));
    try {
      // Others may publish without pause.
      while (!until.expired()) {
        const Reply reply = listener->receiveUntil(until);
        if (reply == nullptr) {
          break;
        }
        if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
            reply->element[2]->type == REDIS_REPLY_STRING &&
            wanted.count({reply->element[2]->str, reply->element[2]->len}) >
                0) {
          return true;
        }
      }
      return true;
    } catch (const TransientError&) {
      return false;
    }
  }

  const RedisOptions options_;
  ConnectionPool<RedisConnection> pool_;
  ConnectionPool<RedisConnection> listeners_;  // subscribed
};

RedisStore::RedisStore(const std::string& host, int port)
    : RedisStore([&] {
        RedisOptions options;
        options.host = host;
        options.port = port;
        return options;
      }()) {}

RedisStore::RedisStore(const RedisOptions& options)
    : impl_(std::make_unique<Impl>(options)) {
  impl_->connect();
}

RedisStore::~RedisStore() = default;

std::string RedisStore::str() const { return impl_->str(); }

void RedisStore::set(const std::string& key, const std::vector<char>& data) {
  impl_->write({"SET", key, toText(data)}, {key}, true);
}

void RedisStore::multi_set(const std::vector<std::string>& keys,
                           const std::vector<std::vector<char>>& values) {
  if (keys.size() != values.size()) {
    throw InvalidOperationException(MakeString(
        "multi_set: ", keys.size(), " keys but ", values.size(), " values"));
  }
  if (keys.empty()) {
    return;
  }
  Command command{"MSET"};
  for (size_t i = 0; i < keys.size(); i++) {
    command.push_back(keys[i]);
    command.push_back(toText(values[i]));
  }
  impl_->write(command, keys, true);
}

void RedisStore::append(const std::string& key,
                        const std::vector<char>& value) {
  impl_->write({"APPEND", key, toText(value)}, {key}, false);
}

int64_t RedisStore::add(const std::string& key, int64_t value) {
  return impl_->write({"INCRBY", key, std::to_string(value)}, {key}, false)
      ->integer;
}

// MGET takes a key that is no string for one that does not exist, EXISTS does
// not: a wait for it would never end. What has come between the two is no
// reason to ask for each key, as all ranks of a large job would when it begins.
std::vector<std::optional<std::vector<char>>> RedisStore::peek(
    const std::vector<std::string>& keys) {
  if (keys.empty()) {
    return {};
  }
  auto found = impl_->strings(keys);
  const auto none = [&found] {
    return std::none_of(found.begin(), found.end(),
                        [](const auto& value) { return value.has_value(); });
  };
  if (none() && impl_->exist(keys)) {
    found = impl_->strings(keys);
    if (none()) {
      impl_->checkTypes(keys);
    }
  }
  return found;
}

bool RedisStore::wait_any(const std::vector<std::string>& keys,
                          Deadline deadline) {
  return !keys.empty() && impl_->waitAny(keys, deadline);
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
