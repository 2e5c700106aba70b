#include "transport/shm/factory.h"

#include <algorithm>
#include <utility>

#include "gloo/common/env.h"
#include "gloo/common/error.h"
#include "gloo/common/logging.h"
#include "transport/base/device.h"
#include "transport/base/topology.h"
#include "transport/shm/link.h"
#include "transport/shm/local.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {
namespace {

// Of one device, all peers together: memory for messages without a receive.
constexpr size_t kEagerMemory = 64 << 20;
constexpr size_t kMaxCredit = 8 << 20;
constexpr size_t kMinCredit = 1 << 10;
// More would be copied a third time where no receive waits.
constexpr size_t kMaxEager = 32 << 10;
constexpr size_t kMaxFrame = 512 << 10;

base::LinkCaps capsFor(int peers) {
  base::LinkCaps caps;
  caps.reportsDeath = true;
  caps.remoteRead = true;
  caps.readByPeer = true;
  caps.creditBytes =
      std::clamp(kEagerMemory / static_cast<size_t>(std::max(peers, 1)),
                 kMinCredit, kMaxCredit);
  // Several messages must fit, or each one would wait for its predecessor.
  caps.eagerBytes = std::min(kMaxEager, caps.creditBytes / 4);
  caps.creditQuantum = kCreditUnit;
  caps.maxFrameBytes = kMaxFrame;
  caps.copiedBytes = kBoundBytes;
  caps.smallBytes = std::min(kShortBytes, caps.eagerBytes);
  // What leaves at once, whatever the sender does next.
  caps.advertBytes = ringSizeFor(peers).bytes / 2;
  return caps;
}

using LocalSegments = Local<Segment>;

std::unique_ptr<base::Link> makeLink(ShmFactory& factory, Connection connection,
                                     const base::LinkCaps& mine,
                                     const Greeting& theirs,
                                     base::LinkHandler& handler) {
  base::LinkCaps caps = agreeLimits(mine, theirs);
  connection.memory = factory.probe(connection.pid, theirs);
  auto link = std::make_unique<ShmLink>(factory.poller(), std::move(connection),
                                        caps, handler);
  GLOO_DEBUG("link: ", link->str());
  return link;
}

// The side that calls: it is handed a segment.
class Caller final : public base::PendingLink {
 public:
  Caller(ShmFactory& factory, int peers)
      : factory_(factory), peers_(peers), greeting_(factory.greeting(peers)) {
    greeting_.endpoint = factory.endpoint().name();
    greeting_.token = makeSecret();
  }

  // Given up, perhaps after it was answered.
  ~Caller() override {
    if (!completed_ && !origin_.inherited()) {
      factory_.endpoint().drop(greeting_.token);
    }
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  std::vector<char> blob() const override { return encode(greeting_); }

  std::unique_ptr<base::Link> complete(base::UniqueFd /*socket*/,
                                       const base::Hello& theirs,
                                       base::LinkHandler& handler) override {
    const Greeting answer = decodeGreeting(theirs.blob);
    Handover handover = factory_.endpoint().take(greeting_.token);
    completed_ = true;
    Connection connection;
    connection.end = End::kTaker;
    connection.pid = handover.pid;
    connection.socket = std::move(handover.socket);
    connection.segment = LocalSegments::instance().find(answer.segment);
    if (connection.segment == nullptr) {
      connection.segment = Segment::adopt(std::move(handover.memory),
                                          ringSizeFor(peers_), answer.segment);
    }
    return makeLink(factory_, std::move(connection), capsFor(peers_), answer,
                    handler);
  }

 private:
  ShmFactory& factory_;
  const int peers_;
  Greeting greeting_;
  bool completed_ = false;
  base::Origin origin_;
};

// The side that was called: it makes the segment and hands it over.
class Answerer final : public base::PendingLink {
 public:
  Answerer(ShmFactory& factory, int peers, const base::Hello& theirs)
      : factory_(factory),
        peers_(peers),
        theirs_(decodeGreeting(theirs.blob)),
        greeting_(factory.greeting(peers)) {
    if (theirs_.hostId != greeting_.hostId) {
      GLOO_THROW_IO_EXCEPTION(
          "Ranks that are on different hosts, or whose GLOO_HOST_ID differs,"
          " share no memory: give both the same, or use another device");
    }
    greeting_.token = theirs_.token;
    greeting_.segment = makeSecret();
    // First, since it fails for peers on other hosts.
    Handover handover = dial(theirs_.endpoint);
    connection_.end = End::kMaker;
    connection_.segment = Segment::create(ringSizeFor(peers), greeting_.segment,
                                          {greeting_.home, theirs_.home});
    LocalSegments::instance().add(greeting_.segment, connection_.segment);
    handOver(handover, theirs_.token, connection_.segment->descriptor());
    connection_.segment->close();
    connection_.pid = handover.pid;
    connection_.socket = std::move(handover.socket);
  }

  std::vector<char> blob() const override { return encode(greeting_); }

  std::unique_ptr<base::Link> complete(base::UniqueFd /*socket*/,
                                       const base::Hello& /*theirs*/,
                                       base::LinkHandler& handler) override {
    return makeLink(factory_, std::move(connection_), capsFor(peers_), theirs_,
                    handler);
  }

 private:
  ShmFactory& factory_;
  const int peers_;
  const Greeting theirs_;
  Greeting greeting_;
  Connection connection_;
};

}  // namespace

ShmFactory::ShmFactory(base::ProgressDomain& domain,
                       const FactoryOptions& options)
    : domain_(domain),
      singleCopy_(options.singleCopy &&
                  Environment::fromEnvironment().shmSingleCopy),
      hostId_(base::hostIdentity()),
      probe_(std::make_unique<const Secret>(makeSecret())),
      sharer_(domain, endpoint_) {
  poller_.watch(endpoint_);
  domain_.add(poller_);
}

ShmFactory::~ShmFactory() {
  if (!origin_.inherited()) {
    domain_.remove(poller_);
  }
}

base::LinkCaps ShmFactory::caps(int peers) const { return capsFor(peers); }

std::unique_ptr<base::PendingLink> ShmFactory::prepare(int peers) {
  return std::make_unique<Caller>(*this, peers);
}

std::unique_ptr<base::PendingLink> ShmFactory::answer(
    int peers, const base::Hello& theirs) {
  return std::make_unique<Answerer>(*this, peers, theirs);
}

Greeting ShmFactory::greeting(int peers) const {
  const base::LinkCaps caps = capsFor(peers);
  Greeting greeting;
  greeting.probeAddress = reinterpret_cast<uint64_t>(probe_->data());
  greeting.probe = *probe_;
  greeting.hostId = hostId_;
  greeting.home = base::Topology::instance().home();
  greeting.eagerBytes = caps.eagerBytes;
  greeting.creditBytes = caps.creditBytes;
  greeting.maxFrameBytes = caps.maxFrameBytes;
  return greeting;
}

ProcessMemory ShmFactory::probe(pid_t pid, const Greeting& theirs) const {
  if (!singleCopy_) {
    return {};
  }
  ProcessMemory memory(pid, theirs.probeAddress, theirs.probe);
  if (!memory.permitted()) {
    GLOO_INFO("process ", pid, "'s memory cannot be read (", memory.trouble(),
              "): no message is read from there");
  }
  return memory;
}

void ShmFactory::addStatistics(internal::Statistics& total) const {
  const internal::Statistics& mine = poller_.statistics();
  total.systemCalls += mine.systemCalls;
  total.framesSent += mine.framesSent;
  total.framesReceived += mine.framesReceived;
  total.bytesSent += mine.bytesSent;
  total.bytesReceived += mine.bytesReceived;
  total.bytesCopied += mine.bytesCopied;
  total.bytesLent += mine.bytesLent;
}

}  // namespace transport::shm
GLOO_NAMESPACE_END
