// Our end of a queue pair, with its registered memory, its receives and what it
// sends. Exists before the peer is known.
//
// Under the domain's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "gloo/config.h"
#include "transport/base/link.h"
#include "transport/ibverbs/memory_region.h"
#include "transport/ibverbs/qp_address.h"
#include "transport/ibverbs/queue_pair.h"
#include "transport/ibverbs/receive_ring.h"
#include "transport/ibverbs/send_queue.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {

class VerbsPoller;

// How much of everything a link has.
struct Shape {
  base::LinkCaps caps;
  uint32_t credits = 0;    // of the peer: receives
  uint32_t sendSlots = 0;  // frames that were copied and are on their way
  uint32_t sendDepth = 0;
  size_t slotBytes = 0;  // of a receive, and of a sendSlot
};

// Of a context with this many peers.
Shape shapeFor(const Adapter& adapter, int peers);

// Anonymous memory of its own pages.
class Pages {
 public:
  explicit Pages(size_t bytes);  // throws IoException
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  char* get() const { return memory_; }
  size_t bytes() const { return bytes_; }

 private:
  const size_t bytes_;
  char* memory_ = nullptr;
};

// One's number at the poller.
class Place {
 public:
  explicit Place(VerbsPoller& poller);  // throws IoException
  ~Place();
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  uint32_t number() const { return number_; }

 private:
  VerbsPoller& poller_;
  const uint32_t number_;
};

class Endpoint {
 public:
  // Throws IoException.
  Endpoint(VerbsPoller& poller, const Shape& shape);

  uint32_t place() const { return place_.number(); }
  const Shape& shape() const { return shape_; }
  QpAddress address() const;
  // Throws IoException. The limits become the smaller ones of both ends.
  void connect(const QpAddress& peer);
  // Afterwards nothing of the device touches any memory for this queue pair.
  void destroy();
  bool destroyed() const { return !qp_; }
  // At which the peer reaches it; see QueuePair.
  uint16_t lid() const { return qp_.lid(); }
  const Gid& gid() const { return qp_.gid(); }
  void requireAddress() { qp_.requireAddress(); }
  std::string hint() const { return qp_.hint(); }

  // REQUIRE !destroyed().
  ReceiveRing& receives() { return receives_; }
  SendQueue& sends() { return sends_; }
  const SendQueue& sends() const { return sends_; }
  ibv_qp* qp() const { return qp_.get(); }
  const ibv_cq* cq() const { return qp_.cq(); }

 private:
  const Place place_;
  Shape shape_;
  Pages pages_;
  MemoryRegion region_;
  QueuePair qp_;
  ReceiveRing receives_;
  SendQueue sends_;
};

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
