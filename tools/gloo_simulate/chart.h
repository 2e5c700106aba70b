// Rows of one collective as a chart.
#pragma once

#include <string>
#include <vector>

#include "tools/gloo_simulate/sweep.h"

namespace gloo_simulate {

// SVG: time against size, a panel per number of ranks; where there are several,
// also time against ranks, a panel per size. All axes are logarithmic.
std::string chartOf(const Options& options, const std::vector<Row>& rows);

}  // namespace gloo_simulate
