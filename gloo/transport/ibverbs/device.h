// Communication over RDMA: InfiniBand and RoCE, by libibverbs.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "gloo/config.h"
#include "gloo/transport/device.h"

GLOO_NAMESPACE_BEGIN
namespace transport {
namespace ibverbs {

// Which port to use, and how. Every limit is cut to what the device offers.
// Value.
struct attr {
  // "mlx5_0"; empty: the first device whose port is active and, on Ethernet,
  // has a GID: of those with a RoCE v2 address that leaves its subnet (or
  // InfiniBand) if there are any, then of those near this thread's NUMA node.
  std::string name;
  int port = 1;
  // Of the port's GID table; -1: on Ethernet a RoCE v2 GID with an address that
  // leaves its subnet, IPv4 first; on InfiniBand none, unless routing needs it.
  int index = -1;

  // Name or address of this host at which peers greet each other, by TCP; the
  // queue pairs are connected over that. Empty: the GID's own address if it is
  // one of this process's network namespace, else what a tcp device would
  // choose.
  std::string hostname = {};

  // The path. See ibv_modify_qp(3).
  int mtu = 0;  // bytes: 256, 512, ... 4096; 0: the port's active one
  // Of the port's table of partitions, 0 to 65535; -1: on InfiniBand the first
  // of which it is a full member, else the first.
  int pkeyIndex = -1;
  int serviceLevel = 0;  // 0 to 15
  int trafficClass = 0;  // 0 to 255: DSCP << 2 on RoCE v2; needs a GID
  // 1 to 255; InfiniBand with a GID (GRH) only: on RoCE the kernel takes the
  // route's.
  int hopLimit = 64;
  // A packet is sent again when it was not acknowledged for 4.096 us <<
  // timeout, at most retryCount times; a device may wait up to four times as
  // long. Together 1.9 to 7.5 s: longer than a cable may be unplugged (1 s).
  int timeout = 16;    // 1 to 31
  int retryCount = 6;  // 0 to 7; Soft-RoCE takes 7 for endlessly
  // Receivers are always ready, so these only matter if something is broken.
  int rnrTimer = 12;      // 1 to 31: 12 is 0.64 ms
  int rnrRetryCount = 6;  // 0 to 6; 7, for ever, is refused

  // Per peer.
  int sendQueue = 128;  // work requests on their way, 8 to 32768
  // Receive buffers, 8 to 32768; fewer when there are many peers.
  int receives = 64;
  // Messages up to this many bytes are copied through registered memory and
  // need no round trip; fewer when there are many peers.
  size_t eagerBytes = 16384;
  // A collective's vectors of together up to this many bytes, unless they lie
  // in an UnboundBuffer, are copied to memory that stays registered, and back:
  // to register and deregister them takes longer. 0 to 2^40; 0: they never are.
  size_t callBytes = size_t{256} << 10;
  // Messages up to this many bytes, head included, are handed over within the
  // work request. 0 to 32768; at most what the device takes.
  int inlineBytes = 256;
  // Gets under way at a time, 0 to 255; 0 on either side: their bytes come in
  // frames, which the target's processor sends.
  int readsAtATime = 4;
  // Of one work request: what is longer is split. 4096 to 2^31; the smaller one
  // of both sides. Whatever else goes to the peer waits behind two of them, and
  // one that takes longer than 2 s looks like a peer that takes nothing.
  size_t maxMessageBytes = size_t{64} << 20;
  // Eager bytes that a peer may have sent and nobody has received yet, 1024 to
  // 2^40; fewer when there are many peers. The smaller one of both sides.
  size_t creditBytes = size_t{8} << 20;

  // Of each context, shared by its peers, 65536 to 2^40: receives, and eager
  // messages that wait in them or are on their way. However many peers there
  // are, each has 8 receives.
  size_t eagerMemoryBytes = size_t{64} << 20;
  // Of the device: places in the first completion queue, 1 to 2^22, so that a
  // few peers need no larger one.
  int completionQueue = 1024;

  // After which time something is lost.
  // The port is down, 0 to an hour: a cable that is plugged in again sooner
  // disturbs nobody.
  std::chrono::milliseconds portDownTime{3000};
  // The port has lost the GID at which a peer reaches it, 0 to an hour: an
  // address that is given back sooner ends no pair. (Most adapters forget the
  // pairs of an address that was removed; what they send then fails.)
  std::chrono::milliseconds gidLostTime{250};
  // The peer's host does not answer by TCP, 1 s to an hour; probes are counted
  // in whole seconds.
  std::chrono::milliseconds hostTimeout{4000};
  // A queue pair has failed, and neither device nor peer says why, 0 to a
  // minute.
  std::chrono::milliseconds reasonTime{250};
};

// Of all RDMA devices, in the system's order; none without libibverbs. Throws
// IoException when they cannot be listed.
GLOO_API std::vector<std::string> getDeviceNames();

// Throws InvalidOperationException when there is no device (so programs that do
// without one know), and for a name, port, index or attribute that does not
// exist; IoException when what there is cannot be used. The text says what
// there is and what to do.
GLOO_API std::shared_ptr<transport::Device> CreateDevice(
    const struct attr& attr = {});

// The same, but a pair is connected when it is first used.
GLOO_API std::shared_ptr<transport::Device> CreateLazyDevice(
    const struct attr& attr = {});

}  // namespace ibverbs
}  // namespace transport
GLOO_NAMESPACE_END
