// Makes the connections over which processes greet each other: listens on one
// TCP endpoint for each device, calls peers, and exchanges hellos, without ever
// blocking. A connection that became a pair's goes to the link factory; garbage
// is refused and costs nobody anything.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gloo/config.h"
#include "transport/base/progress.h"
#include "transport/base/socket.h"
#include "transport/base/wire.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// A transport context, as far as its connections go. Called from the
// connector's poll, under the domain's lock.
class Party {
 public:
  virtual ~Party() = default;

  // A peer greets us on an accepted connection (hello.dstNonce is ours).
  // Returns our answer: verdict kAccepted (the connection becomes the pair's),
  // kRefused with a text, or, for kProbe, kAccepted.
  virtual Hello onHello(const Hello& theirs) = 0;

  // Hellos were exchanged and accepted on both sides; either side called.
  // `tag` is what connect() was given, or 0 on an accepted connection.
  virtual void onConnected(const Hello& theirs, UniqueFd socket,
                           uint64_t tag) = 0;

  enum class Failure : uint8_t {
    kUnreachable,  // timed out, no way there
    kShort,        // this process has no descriptor, memory or port for a call
    kHungUp,       // closed before an answer: by who dies, as the next call
                   // will tell, or by who has too many callers
    kBroken,       // what came back is no answer to this call
    kNobody,       // nobody listens there
    kUnknown,      // somebody else lives there now: stale
    kPassed,       // who was called is there, but has no use for this call:
                   // it may later, or has another peer of that rank
    kRefused,      // the peer says no; text says why
  };
  // A connect() has failed; it is not repeated by the connector.
  virtual void onConnectFailed(uint64_t tag, Failure failure,
                               const std::string& text) = 0;
  // What wake() was given.
  virtual void onTimer(uint64_t tag) { (void)tag; }
};

class Connector : public Poller {
 public:
  // Listens on `local` (port 0: any), and adds itself to the domain, whose lock
  // is held: by every function here. Throws IoException naming the address.
  Connector(ProgressDomain& domain, const SocketAddress& local);
  ~Connector() override;

  // Where peers reach this device.
  const SocketAddress& endpoint() const;

  void addParty(uint64_t nonce, Party& party);
  // Drops the party's unfinished connections too.
  void removeParty(uint64_t nonce);

  // Calls a peer and greets it with `mine`; onConnected or onConnectFailed
  // follows from a later poll. `tag` is handed back. Who does not answer within
  // the limit has failed; but a peer that is asked for a pair may take its time
  // once it has the greeting: it may be slow, or stopped for a while, and would
  // still find it, and believe in it, after a second one was sent.
  void connect(uint64_t nonce, const SocketAddress& to, const Hello& mine,
               uint64_t tag, std::chrono::milliseconds limit);
  // Gives up such a call; nothing follows.
  void cancel(uint64_t nonce, uint64_t tag);
  // The party's onTimer follows after so long, unless it is removed.
  void wake(uint64_t nonce, uint64_t tag, std::chrono::milliseconds pause);

  bool poll() override;
  int wakeFd() const override;
  bool arm() override;
  std::chrono::milliseconds nextTimer() const override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace transport::base
GLOO_NAMESPACE_END
