// The middle of several measurements.
#pragma once

#include <vector>

namespace support {

// Of an even number, the mean of the middle two. Throws std::logic_error if
// there are none.
double median(std::vector<double> values);

}  // namespace support
