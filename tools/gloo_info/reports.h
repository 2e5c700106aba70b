// What gloo_info can print: one function for each section. Each returns whether
// what the user asked for can be had.
#pragma once

#include <ostream>
#include <string>

namespace gloo_info {

// What this build of the library contains.
bool printBuild(std::ostream& out);

// Its cores and NUMA nodes.
bool printHost(std::ostream& out);

// The network interfaces, and which one a TCP device would use.
bool printTcp(std::ostream& out);

// What the automatic device may use for its peers: makes one.
bool printAutomatic(std::ostream& out);

// As the attributes of gloo/transport/ibverbs/device.h.
struct RdmaOptions {
  std::string device;
  int port = 1;
  int gidIndex = -1;
};

// The RDMA devices with their ports and GIDs, and which one an ibverbs device
// would use. False when none can be used.
bool printRdma(std::ostream& out, const RdmaOptions& wanted);

struct AlgorithmsOptions {
  int ranks = 8;
  int ranksPerHost = 0;  // 0: all are on one
  std::string transport = "tcp";
  std::string tuningFile;  // empty: what the environment names, if it does
  bool json = false;
};

// Which algorithm a collective uses at which size, in what segments, and what
// the model expects of it. Throws what Selection throws.
void printAlgorithms(std::ostream& out, const AlgorithmsOptions& options);

}  // namespace gloo_info
