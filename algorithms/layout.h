// Where the blocks of an area lie.
#pragma once

#include <cstddef>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// Value; borrows `offsets`.
struct Layout {
  size_t elements = 0;
  int blocks = 1;
  // Null: as even as possible, longer blocks first. Else blocks + 1 offsets in
  // elements, the last of which equals `elements`.
  const size_t* offsets = nullptr;
  size_t first = 0;  // offset of block 0, where `offsets` is null

  // In elements; 0 <= block <= blocks.
  size_t offset(int block) const {
    if (offsets != nullptr) {
      return offsets[block];
    }
    const size_t n = static_cast<size_t>(blocks);
    const size_t b = static_cast<size_t>(block);
    const size_t longer = elements % n;
    return first + b * (elements / n) + (b < longer ? b : longer);
  }
};

struct Layouts {
  Layout input;
  Layout output;
  Layout scratch;
};

}  // namespace algorithms
GLOO_NAMESPACE_END
