// What is known of a network: its parameters for the cost model and, where the
// algorithms were measured on it, which is the best at which size.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/direct_parameters.h"
#include "algorithms/network.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// From so many bytes on (see sharedBytes), up to the next row's.
struct TableRow {
  size_t bytes = 0;
  const AlgorithmInfo* algorithm = nullptr;
};
using Table = std::vector<TableRow>;  // by ascending bytes

struct Tuning {
  NetworkParameters network;
  // The longest segments that the model may choose.
  size_t segmentBytes = std::numeric_limits<size_t>::max();
  // If not 0, it may choose them up to a sixteenth of the vector only, in whole
  // multiples of this, one of which is always allowed.
  size_t shortSegmentBytes = 0;
  // The same where a rank reduces what it receives.
  size_t reducedSegmentBytes = 0;
  std::map<Collective, Table> best{};
  DirectParameters direct{};
};

// What the library knows without a file. `transport` as Device kinds are named:
// "tcp", "shm", "ibverbs" or "auto"; others count as tcp.
Tuning shippedTuning(const std::string& transport, int size, bool oneHost);

// Reads a tuning file (docs/tuning.md) and puts into `tuning` what it says of
// this transport: the table and the direct parameters of exactly `size` ranks,
// the other parameters of the number of ranks that is nearest. Throws
// InvalidOperationException, which names the place, if any part of the text
// makes no sense.
void applyTuningFile(const std::string& text, const std::string& transport,
                     int size, Tuning& tuning);

}  // namespace algorithms
GLOO_NAMESPACE_END
