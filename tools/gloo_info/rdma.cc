#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "tools/gloo_info/reports.h"
#include "transport/ibverbs/adapter.h"
#include "transport/ibverbs/completion_queues.h"
#include "transport/ibverbs/endpoint.h"
#include "transport/ibverbs/ports.h"
#include "transport/ibverbs/queue_pair.h"
#include "transport/ibverbs/receive_ring.h"

namespace gloo_info {
namespace {

namespace ibverbs = gloo::transport::ibverbs;

int mtuBytes(ibv_mtu mtu) { return 128 << static_cast<int>(mtu); }

void printPort(std::ostream& out, const ibverbs::RdmaDevice& device,
               const ibverbs::Port& port) {
  out << "    port " << port.number << ": " << port.state << ", "
      << (port.ethernet() ? "Ethernet" : "InfiniBand") << ", MTU "
      << mtuBytes(port.attr.active_mtu) << " of " << mtuBytes(port.attr.max_mtu)
      << " bytes, messages up to " << (port.attr.max_msg_sz >> 10) << " KiB";
  if (!port.ethernet()) {
    out << ", LID " << port.attr.lid;
  }
  out << "\n";
  for (const ibverbs::Gid& gid : port.gids) {
    out << "      GID " << gid.str() << "\n";
  }
  const std::string why = ibverbs::whyUnusable(device, port.number);
  if (!why.empty()) {
    out << "      cannot be used: " << why << "\n";
  }
}

const char* atomics(ibv_atomic_cap capability) {
  switch (capability) {
    case IBV_ATOMIC_HCA:
      return "within the device";
    case IBV_ATOMIC_GLOB:
      return "also with the processors";
    case IBV_ATOMIC_NONE:
      break;
  }
  return "none";
}

// What a device need not have.
void printOffers(std::ostream& out, const ibv_device_attr& attr) {
  out << "    offers: ";
  if (attr.max_srq > 0) {
    out << attr.max_srq << " shared receive queues of " << attr.max_srq_wr
        << " receives";
  } else {
    out << "no shared receive queues";
  }
  out << ", atomics: " << atomics(attr.atomic_cap) << ", "
      << attr.max_qp_rd_atom << " reads answered and "
      << attr.max_qp_init_rd_atom << " asked at a time\n";
}

void printDevice(std::ostream& out, const ibverbs::RdmaDevice& device) {
  out << "  " << device.name;
  if (!device.error.empty()) {
    out << ": " << device.error << "\n";
    return;
  }
  const ibv_device_attr& attr = device.attr;
  const std::string foreign = device.foreign();
  out << ": " << foreign << (foreign.empty() ? "" : ", unusable, ")
      << "firmware \"" << attr.fw_ver << "\", queue pairs " << attr.max_qp
      << " of " << attr.max_qp_wr << " requests, completion queues of "
      << attr.max_cqe << ", regions " << attr.max_mr;
  if (device.node >= 0) {
    out << ", near NUMA node " << device.node;
  }
  out << "\n";
  printOffers(out, attr);
  for (const ibverbs::Port& port : device.ports) {
    printPort(out, device, port);
  }
}

// What a pair would use of it, and why. What fits inline is known to a queue
// pair alone: makes one.
void printUse(std::ostream& out, ibverbs::Adapter& adapter) {
  const ibverbs::attr& wanted = adapter.settings();
  const ibv_device_attr& device = adapter.device();
  const int readsAtATime = std::min(
      {wanted.readsAtATime, device.max_qp_rd_atom, device.max_qp_init_rd_atom});
  const ibverbs::Shape shape = ibverbs::shapeFor(adapter, 1);
  ibverbs::CompletionQueues queues(adapter);
  const ibverbs::QueuePair pair(
      adapter, queues,
      {static_cast<int>(shape.sendDepth),
       static_cast<int>(shape.credits + ibverbs::ReceiveRing::kReserve)});
  out << "    inline: " << pair.inlineBytes() << " bytes of a request, of "
      << wanted.inlineBytes << " wanted"
      << (pair.inlineBytes() < static_cast<uint32_t>(wanted.inlineBytes)
              ? ": the device takes no more"
              : "")
      << "\n"
      << "    messages: split at " << adapter.maxMessage()
      << " bytes, the less of the port's " << adapter.port().max_msg_sz
      << " and maxMessageBytes, " << wanted.maxMessageBytes << "\n"
      << "    receives: " << shape.credits
      << " of each pair's own, so that each peer knows what it may send; "
         "shared "
         "receive queues are not used\n"
      << "    gets: "
      << (readsAtATime > 0 ? "reads by the device, " +
                                 std::to_string(readsAtATime) + " at a time"
                           : "in frames, as it answers or asks for no reads")
      << "\n    atomics: not used, as no rank changes what another one "
         "counts\n";
}

}  // namespace

bool printRdma(std::ostream& out, const RdmaOptions& wanted) {
  out << "RDMA devices:\n";
  try {
    const std::vector<ibverbs::RdmaDevice> devices = ibverbs::listDevices();
    for (const ibverbs::RdmaDevice& device : devices) {
      printDevice(out, device);
    }
    ibverbs::attr attr;
    attr.name = wanted.device;
    attr.port = wanted.port;
    attr.index = wanted.gidIndex;
    ibverbs::Adapter adapter(attr);
    out << "  an ibverbs device uses: " << adapter.chosen().reason << "\n";
    printUse(out, adapter);
    return true;
  } catch (const std::exception& error) {
    out << "  an ibverbs device cannot be made: " << error.what() << "\n";
    return false;
  }
}

}  // namespace gloo_info
