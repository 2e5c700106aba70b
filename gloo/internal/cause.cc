#include "gloo/internal/cause.h"

#include <cstddef>

#include "gloo/common/error.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

namespace {

// Made when the library is loaded, and never destroyed: contexts may still fail
// while the process ends.
alignas(Cause) std::byte memory[sizeof(Cause)];
const Cause* const kOutOfMemory = new (memory)
    Cause{Cause::Kind::kIo, -1, -1, "out of memory; this context is closed"};

}  // namespace

CausePtr outOfMemory() noexcept { return {CausePtr(), kOutOfMemory}; }

void throwCause(const Cause& cause, const std::string& operation) {
  std::string text = operation + ": " + cause.text;
  if (cause.foundBy >= 0) {
    text += MakeString(" [found by rank ", cause.foundBy,
                       "; this context is closed]");
  }
  switch (cause.kind) {
    case Cause::Kind::kTimeout:
      throw TimeoutException(text);
    case Cause::Kind::kPeerLost:
      throw PeerLostException(text);
    case Cause::Kind::kMismatch:
      throw MismatchException(text);
    case Cause::Kind::kRendezvous:
      throw RendezvousException(text);
    case Cause::Kind::kIo:
    case Cause::Kind::kClosed:
      break;
  }
  throw IoException(text);
}

std::string listRanks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) {
      end++;
    }
    text += MakeString(i == 0 ? "" : ", ", ranks[i]);
    if (end - i > 1) {
      text += MakeString("-", ranks[end - 1]);
    }
    i = end;
  }
  return text;
}

}  // namespace internal
GLOO_NAMESPACE_END
