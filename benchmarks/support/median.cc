#include "benchmarks/support/median.h"

#include <algorithm>
#include <stdexcept>

namespace support {

double median(std::vector<double> values) {
  if (values.empty()) {
    throw std::logic_error("no median of nothing");
  }
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle]
                                : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace support
