#include <exception>

#include "gloo/common/linux.h"
#include "gloo/transport/tcp/device.h"
#include "tools/gloo_info/reports.h"
#include "transport/base/topology.h"
#include "transport/tcp/interfaces.h"

namespace gloo_info {

namespace {

// Without the port, which is none.
std::string withoutPort(const std::string& address) {
  return address.substr(0, address.rfind(':'));
}

}  // namespace

bool printTcp(std::ostream& out) {
  namespace tcp = gloo::transport::tcp;
  out << "network interfaces:\n";
  for (const tcp::Interface& interface : tcp::listInterfaces()) {
    out << "  " << interface.name << ": "
        << withoutPort(interface.address.str())
        << (interface.up ? "" : ", down")
        << (interface.loopback ? ", loopback" : "");
    if (const int speed = gloo::getInterfaceSpeedByName(interface.name);
        speed > 0) {
      out << ", " << speed << " Mb/s";
    }
    if (const int node =
            gloo::transport::base::Topology::instance().nodeOfDevice(
                gloo::interfaceToBusID(interface.name));
        node >= 0) {
      out << ", near NUMA node " << node;
    }
    out << "\n";
  }
  try {
    out << "  a TCP device uses: " << tcp::CreateDeviceAttr({}).iface << "\n";
    return true;
  } catch (const std::exception& error) {
    out << "  a TCP device cannot be made: " << error.what() << "\n";
    return false;
  }
}

}  // namespace gloo_info
