#include "transport/tcp/factory.h"

#include <algorithm>
#include <utility>

#include "gloo/common/error.h"
#include "transport/tcp/link.h"

GLOO_NAMESPACE_BEGIN
namespace transport::tcp {
namespace {

// Of one device, all peers together.
constexpr size_t kEagerMemory = 64 << 20;
constexpr size_t kMaxCredit = 8 << 20;  // of one peer; more did not help
constexpr size_t kMinCredit = 1 << 10;
// A message beyond this is worth a round trip that saves its copy.
constexpr size_t kMaxEager = 256 << 10;
// Large, because each frame costs a head; small, because a frame that has
// begun must end before another one may pass.
constexpr size_t kMaxFrame = 1 << 20;
// What a message costs at least: the receiver's bookkeeping.
constexpr size_t kQuantum = 256;
constexpr size_t kLimitsBytes = 24;

void putLimit(std::vector<char>& out, uint64_t value) {
  for (int i = 0; i < 8; i++) {
    out.push_back(static_cast<char>(value >> (8 * i)));
  }
}

uint64_t getLimit(const std::vector<char>& in, size_t at) {
  uint64_t value = 0;
  for (int i = 0; i < 8; i++) {
    value |= uint64_t{static_cast<uint8_t>(in[at + i])} << (8 * i);
  }
  return value;
}

class TcpPending final : public base::PendingLink {
 public:
  TcpPending(TcpPoller& poller, const base::LinkCaps& caps)
      : poller_(poller), caps_(caps) {}

  std::vector<char> blob() const override { return encodeLimits(caps_); }

  std::unique_ptr<base::Link> complete(base::UniqueFd socket,
                                       const base::Hello& theirs,
                                       base::LinkHandler& handler) override {
    return std::make_unique<TcpLink>(poller_, std::move(socket),
                                     agreeLimits(caps_, theirs.blob), handler);
  }

 private:
  TcpPoller& poller_;
  const base::LinkCaps caps_;
};

}  // namespace

base::LinkCaps capsFor(int peers) {
  base::LinkCaps caps;
  caps.reportsDeath = true;
  caps.creditBytes =
      std::clamp(kEagerMemory / static_cast<size_t>(std::max(peers, 1)),
                 kMinCredit, kMaxCredit);
  // Several messages must fit, or each one would wait for its predecessor.
  caps.eagerBytes = std::min(kMaxEager, caps.creditBytes / 4);
  caps.creditQuantum = kQuantum;
  caps.maxFrameBytes = kMaxFrame;
  return caps;
}

std::vector<char> encodeLimits(const base::LinkCaps& caps) {
  std::vector<char> out;
  putLimit(out, caps.eagerBytes);
  putLimit(out, caps.creditBytes);
  putLimit(out, caps.maxFrameBytes);
  return out;
}

base::LinkCaps agreeLimits(const base::LinkCaps& mine,
                           const std::vector<char>& theirs) {
  base::LinkCaps caps = mine;
  if (theirs.size() >= kLimitsBytes) {  // a later version may add some
    caps.eagerBytes = std::min(mine.eagerBytes, getLimit(theirs, 0));
    caps.creditBytes = std::min(mine.creditBytes, getLimit(theirs, 8));
    caps.maxFrameBytes = std::min(mine.maxFrameBytes, getLimit(theirs, 16));
  }
  if (theirs.size() < kLimitsBytes || caps.creditBytes < caps.eagerBytes ||
      caps.creditBytes < caps.creditQuantum || caps.maxFrameBytes == 0) {
    GLOO_THROW_IO_EXCEPTION(
        "The peer's hello has impossible limits for a TCP link (",
        theirs.size(), " bytes): it runs another program or is broken");
  }
  return caps;
}

TcpFactory::TcpFactory(base::ProgressDomain& domain) : domain_(domain) {
  domain_.add(poller_);
}

TcpFactory::~TcpFactory() {
  if (!origin_.inherited()) {
    domain_.remove(poller_);
  }
}

base::LinkCaps TcpFactory::caps(int peers) const { return capsFor(peers); }

std::unique_ptr<base::PendingLink> TcpFactory::prepare(int peers) {
  return std::make_unique<TcpPending>(poller_, capsFor(peers));
}

void TcpFactory::addStatistics(internal::Statistics& total) const {
  total += poller_.statistics();
}

}  // namespace transport::tcp
GLOO_NAMESPACE_END
