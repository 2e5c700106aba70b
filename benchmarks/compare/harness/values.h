// Inputs that change with every iteration, and the results that follow from
// them. All sums are small integers, so float32 holds them exactly.
#pragma once

#include <cstddef>
#include <string>

#include "measure.h"

namespace measure {

// Number of elements of input and output, and the exact bytes.
Work shapeOf(const std::string& collective, size_t bytes, int size);

bool isCollective(const std::string& name);
bool runsWith(const std::string& collective, int size);
bool worksInPlace(const std::string& collective);

// Borrows the memory of the Work.
class Values {
 public:
  Values(const Work& work, int rank, int size);

  // Rewrites the whole input.
  void fill(size_t iteration) const;

  // Throws if the result is wrong; looks at every element or at a few of them.
  void check(size_t iteration, bool all) const;

 private:
  float inputOf(int rank, size_t element, size_t iteration) const;
  float expected(size_t element, size_t iteration) const;

  const Work& work_;
  int rank_;
  int size_;
  bool hasResult_;
};

}  // namespace measure
