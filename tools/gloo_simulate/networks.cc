#include "tools/gloo_simulate/networks.h"

#include <sstream>

#include "tools/gloo_simulate/options.h"

namespace gloo_simulate {

namespace {

// What the library knows of a transport, among hosts or within one.
NamedNetwork shipped(const char* name, const char* help, const char* transport,
                     bool oneHost) {
  auto tuning = gloo::algorithms::shippedTuning(transport, 2, oneHost);
  auto& network = tuning.network;
  network.between = oneHost ? network.inside : network.between;
  network.ranksPerHost = 1;
  return {name, help, tuning, oneHost};
}

NamedNetwork datacentre() {
  gloo::algorithms::Tuning tuning;
  tuning.network.between = {4.5e-6, 0.25e-6, 0.25e-6, 4e-11};
  tuning.network.reducePerByte = 4e-11;
  tuning.network.copyPerByte = 4e-11;
  return {"datacentre",
          "alpha 5 us (0.25 us of it on each processor), 25 GB/s; reductions "
          "and copies as fast",
          tuning};
}

}  // namespace

const std::vector<NamedNetwork>& networks() {
  static const std::vector<NamedNetwork> kNetworks = {
      datacentre(),
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
