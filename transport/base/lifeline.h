// Lifelines: idle TCP connections between processes by which the death of one
// is known to the others within a second, whatever the transport (an idle RC
// queue pair never reports a dead peer). Owned by the process and shared by all
// its contexts: each rank r keeps one to the ranks r + 2^k and r - 2^k, and
// what it learns it floods to its neighbours, so that the news survives several
// dead or stopped ranks. One thread, asleep in the kernel when nothing happens.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gloo/config.h"
#include "gloo/internal/cause.h"
#include "gloo/internal/fork.h"
#include "transport/base/socket.h"
#include "transport/base/wire.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

class Lifelines {
 public:
  struct Peer {
    int rank = -1;
    uint64_t nonce = 0;  // of its transport context
    SocketAddress endpoint;
    int pid = 0;  // then also watched by pidfd; 0: it has no pid here
  };

  // Called from the lifeline thread, without any lock: with the cause, at most
  // once per world; and with one of kind kClosed that is found by this rank,
  // for each of its suspects that has left in order.
  using OnCause = std::function<void(const internal::Cause&)>;

  // The process's own.
  static Lifelines& instance();

  // Keeps this context's lifelines: `peers` has all other ranks of the world;
  // the ones to connect to are chosen here. Does not block. Nobody leaves in
  // order before met(): whose endpoint refuses us before that has died.
  void join(uint64_t worldNonce, uint64_t ownNonce, int rank, int size,
            std::vector<Peer> peers, OnCause onCause);

  // This rank has found a cause: tell the neighbours, who tell theirs. onCause
  // is not called for it. (A process may hold several ranks of one world: hence
  // the own nonce.)
  void flood(uint64_t worldNonce, uint64_t ownNonce,
             const internal::Cause& cause);

  // This rank cannot reach another one, cause.culprit, and does not know why:
  // unless the reason is heard within a moment, `cause` is taken for it, and
  // onCause is called with it. `gone`: nothing of the peer's is there any more.
  // Who says bye is a neighbour's to hear; of another one that is gone, and
  // whose death is not known to everybody by the time that it would be, the
  // same is taken to be true.
  void suspect(uint64_t worldNonce, uint64_t ownNonce,
               const internal::Cause& cause, bool gone);

  // Orderly: the neighbours learn that this rank has left. onCause is not
  // called any more once this has returned: it waits for a call that is under
  // way, so the caller holds no lock that onCause takes. Idempotent.
  void leave(uint64_t worldNonce, uint64_t ownNonce);

  // Each of this context's lifelines has been open, in the eyes of both ends:
  // from then on the death of this process is noticed, and whether it left.
  bool met(uint64_t worldNonce, uint64_t ownNonce) const;

  // To whom there was no such line yet, ascending, and what the latest try to
  // call one of them met with ("rank 2 at 10.0.0.1:41234: Connection refused",
  // and what to do about it); empty if nothing.
  struct Unmet {
    std::vector<int> ranks;
    std::string trouble;
    bool isShort = false;  // of descriptors or the like: nobody else's fault
  };
  Unmet unmet(uint64_t worldNonce, uint64_t ownNonce) const;

  // An accepted connection whose hello has Purpose::kLifeline.
  void adopt(UniqueFd socket, const Hello& theirs);

 private:
  template <typename T>
  friend T& internal::instanceOfProcess();

  Lifelines();
  ~Lifelines();
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace transport::base
GLOO_NAMESPACE_END
