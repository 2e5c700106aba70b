// Predictions held against measurements.
#pragma once

#include <functional>
#include <string>

#include "tools/gloo_simulate/options.h"

namespace gloo_simulate {

// Reads options.checkFiles: lists of objects with ranks, total_bytes (or
// bytes), algorithm, collective (or benchmark) and us (or p50_us), as the
// benchmark writes them with --json; rows of the algorithm "auto" count for
// nothing, and of several rows of one algorithm and size the median. Prints
// each pair of algorithms whose measured times differ by over 25 % and are
// predicted in the other order, and how many pairs there are. Whether all are
// right: all rows have a prediction, and there are pairs. `note` and `progress`
// as those of sweep(). Throws std::runtime_error if a file makes no sense,
// UsageError if the options do not go with its ranks.
bool checkOrder(const Options& options,
                const std::function<void(const std::string&)>& note,
                const std::function<void(const std::string&)>& progress);

}  // namespace gloo_simulate
