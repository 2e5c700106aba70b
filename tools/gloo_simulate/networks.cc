#include "tools/gloo_simulate/networks.h"

#include <sstream>

#include "algorithms/tuning.h"
#include "tools/gloo_simulate/options.h"

namespace gloo_simulate {

namespace {

// What the library knows of a transport, among hosts or within one.
NamedNetwork shipped(const char* name, const char* help, const char* transport,
                     bool oneHost) {
  const auto network =
      gloo::algorithms::shippedTuning(transport, 2, oneHost).network;
  return {name, help, oneHost ? network.inside : network.between,
          network.reducePerByte, network.copyPerByte};
}

}  // namespace

const std::vector<NamedNetwork>& networks() {
  static const std::vector<NamedNetwork> kNetworks = {
      {"datacentre",
       "alpha 5 us (0.25 us of it on each processor), 25 GB/s; reductions and "
       "copies as fast",
       {4.5e-6, 0.25e-6, 0.25e-6, 4e-11},
       4e-11,
       4e-11},
      shipped("ethernet", "what the library assumes of TCP between hosts",
              "tcp", false),
      shipped("verbs", "of RDMA between hosts", "ibverbs", false),
      shipped("loopback", "of TCP within a host", "tcp", true),
      shipped("memory", "of shared memory within a host", "shm", true),
  };
  return kNetworks;
}

const NamedNetwork& networkNamed(const std::string& name) {
  std::string names;
  for (const NamedNetwork& network : networks()) {
    if (network.name == name) {
      return network;
    }
    names += (names.empty() ? "" : ", ") + network.name;
  }
  throw UsageError("there is no network '" + name + "'; there are " + names);
}

std::string describeNetworks() {
  std::ostringstream out;
  out << "Networks:\n";
  for (const NamedNetwork& network : networks()) {
    out << "  " << network.name << ": " << network.help << "\n";
  }
  return out.str();
}

}  // namespace gloo_simulate
