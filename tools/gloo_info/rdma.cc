#include <exception>
#include <vector>

#include "tools/gloo_info/reports.h"
#include "transport/base/topology.h"
#include "transport/ibverbs/ports.h"

namespace gloo_info {
namespace {

namespace ibverbs = gloo::transport::ibverbs;

int mtuBytes(ibv_mtu mtu) { return 128 << static_cast<int>(mtu); }

void printPort(std::ostream& out, const ibverbs::Port& port) {
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
  for (const ibverbs::Port& port : device.ports) {
    printPort(out, port);
  }
}

}  // namespace

bool printRdma(std::ostream& out, const RdmaOptions& wanted) {
  out << "RDMA devices:\n";
  try {
    const std::vector<ibverbs::RdmaDevice> devices = ibverbs::listDevices();
    for (const ibverbs::RdmaDevice& device : devices) {
      printDevice(out, device);
    }
    const ibverbs::ChosenPort chosen = ibverbs::choosePort(
        devices, {wanted.device, wanted.port, wanted.gidIndex,
                  gloo::transport::base::Topology::instance().home()});
    out << "  an ibverbs device uses: " << chosen.reason << "\n";
    return true;
  } catch (const std::exception& error) {
    out << "  an ibverbs device cannot be made: " << error.what() << "\n";
    return false;
  }
}

}  // namespace gloo_info
