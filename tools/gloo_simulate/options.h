// The command line.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/tuning.h"
#include "tools/support/command_line.h"

namespace gloo_simulate {

constexpr int kMostRanks = 16384;
constexpr size_t kMostBytes = size_t{1} << 40;

struct Options {
  // What.
  gloo::algorithms::Collective collective =
      gloo::algorithms::Collective::kAllreduce;
  std::string algorithm = "all";  // or "auto", or a name
  std::vector<int> ranks;
  std::vector<size_t> sizes;  // bytes
  int root = 0;
  int radix = 2;
  size_t elementSize = 4;
  size_t segmentBytes = 0;  // 0: as the library chooses
  int window = 0;           // 0: as the library chooses
  bool inPlace = true;

  // On what.
  gloo::algorithms::Tuning tuning;  // the network and its segments
  bool oneHost = false;             // has all ranks, and `between` inside
  int slowRank = -1;
  double slowFactor = 1;

  // How it is told.
  std::string jsonFile;
  std::string plotFile;
  double mostActions = 1e8;

  // Other tasks.
  bool text = false;                    // one schedule, to stdout
  std::string drawFile;                 // the same as SVG
  int drawSegments = 1;                 // of each block there
  std::vector<std::string> checkFiles;  // measured times
  std::string docsFolder;               // where algorithms.md goes
};

using command_line::HelpRequest;
using command_line::UsageError;

// Throws UsageError or HelpRequest.
Options parseOptions(int argc, const char* const* argv);

// That the other options go with each of options.ranks. Throws UsageError.
void requireRanks(const Options& options);

// "8", "64K", "1M", "1G" (powers of 1024, with or without B or iB), at most
// kMostBytes. Throws UsageError.
size_t parseBytes(const std::string& text);

// Throws UsageError, listing the names, if there is none of that name.
gloo::algorithms::Collective collectiveNamed(const std::string& name);

}  // namespace gloo_simulate
