// A device over any kind of link: the progress domain, the connector by which
// peers are greeted, and the factory of links. Contexts hold references to it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "gloo/config.h"
#include "gloo/internal/statistics.h"
#include "gloo/transport/device.h"
#include "transport/base/connector.h"
#include "transport/base/fork.h"
#include "transport/base/link.h"
#include "transport/base/link_tally.h"
#include "transport/base/messages.h"
#include "transport/base/progress.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// What a transport knows of the hardware.
struct DeviceInfo {
  std::string name;      // "tcp, eth0 10.0.0.1": the begin of str()
  std::string pciBusId;  // empty: none
  int speedMbps = 0;
  bool (*gpuDirect)() = nullptr;  // null: no
  bool lazy = false;              // pairs connect at first use
};

class Device final : public transport::Device, private Poller {
 public:
  // Called once, with the domain that the links belong to, and the device's own
  // `info`, which it may complete.
  using MakeFactory = std::function<std::unique_ptr<LinkFactory>(
      ProgressDomain& domain, DeviceInfo& info)>;

  // Listens on `local` for greetings (port 0: any).
  Device(DeviceInfo info, const SocketAddress& local,
         const MakeFactory& makeFactory);
  ~Device() override;

  // transport::Device
  std::string str() const override;
  const std::string& getPCIBusID() const override { return info_.pciBusId; }
  int getInterfaceSpeed() const override { return info_.speedMbps; }
  bool hasGPUDirect() const override {
    return info_.gpuDirect != nullptr && info_.gpuDirect();
  }
  std::shared_ptr<transport::Context> createContext(int rank,
                                                    int size) override;

  ProgressDomain& domain() { return domain_; }
  Connector& connector() { return *connector_; }
  LinkFactory& factory() { return *factory_; }
  const LinkFactory& factory() const { return *factory_; }

  // What it counts is part of str().
  const std::shared_ptr<LinkTally>& tally() const { return tally_; }

  // Counts of the protocol; REQUIRES the domain's lock.
  internal::Statistics& counts() { return counts_; }
  // Of waiting and reading in lanes, which is not under the lock.
  void countDirectCall() {
    directCalls_.fetch_add(1, std::memory_order_relaxed);
  }
  // hostIdentity() when the device was made.
  uint64_t hostId() const { return hostId_; }
  // All counts. Thread-safe.
  internal::Statistics statistics() const;

  // A pair has more to give; it has not. REQUIRES the domain's lock.
  void addPump(PumpEntry& entry) {
    if (!entry.listed) {
      entry.listed = true;
      pumps_.pushBack(&entry);
      rest(false);
      nudge();
    }
  }
  void removePump(PumpEntry& entry) {
    if (entry.listed) {
      entry.listed = false;
      pumps_.remove(&entry);
      rest(pumps_.empty());
    }
  }

 private:
  bool poll() override;
  int wakeFd() const override { return -1; }
  bool arm() override { return !pumps_.empty(); }

  DeviceInfo info_;  // constant once it is made
  const uint64_t hostId_;
  Origin origin_;
  mutable ProgressDomain domain_;
  internal::Statistics counts_;
  std::atomic<uint64_t> directCalls_{0};
  Fifo<PumpEntry> pumps_;
  std::unique_ptr<LinkFactory> factory_;
  std::shared_ptr<LinkTally> tally_;
  std::unique_ptr<Connector> connector_;
};

// Equal for processes that share a kernel and have the same GLOO_HOST_ID. Which
// is not enough to share memory: transports prove that themselves.
uint64_t hostIdentity();

// The kernel's number of the PID namespace in which this process has its pid;
// 0: not known. Containers of one kernel have their own.
uint32_t pidNamespace();

// From the system's random source.
uint64_t randomNonce();

}  // namespace transport::base
GLOO_NAMESPACE_END
