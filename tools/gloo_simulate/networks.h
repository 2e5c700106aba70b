// Networks to simulate, by name.
#pragma once

#include <string>
#include <vector>

#include "algorithms/tuning.h"

namespace gloo_simulate {

struct NamedNetwork {
  std::string name;
  std::string help;
  // `network.between` is its link.
  gloo::algorithms::Tuning tuning;
  // All ranks are on one host.
  bool isHost = false;
};

const std::vector<NamedNetwork>& networks();

// Throws UsageError, listing the names, if there is none of that name.
const NamedNetwork& networkNamed(const std::string& name);

// For --help: a line for each.
std::string describeNetworks();

}  // namespace gloo_simulate
