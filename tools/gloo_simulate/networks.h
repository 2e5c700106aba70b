// Networks to simulate, by name.
#pragma once

#include <string>
#include <vector>

#include "algorithms/network.h"

namespace gloo_simulate {

struct NamedNetwork {
  std::string name;
  std::string help;
  gloo::algorithms::LinkParameters link;
  double reducePerByte = 0;
  double copyPerByte = 0;
};

const std::vector<NamedNetwork>& networks();

// Throws UsageError, listing the names, if there is none of that name.
const NamedNetwork& networkNamed(const std::string& name);

// For --help: a line for each.
std::string describeNetworks();

}  // namespace gloo_simulate
