// A frame's head as it travels.
#pragma once

#include <vector>

#include "transport/base/wire.h"

GLOO_NAMESPACE_BEGIN
namespace test {

inline std::vector<char> bytesOf(const transport::base::FrameHeader& header) {
  std::vector<char> bytes(transport::base::FrameHeader::kBytes);
  encode(header, bytes.data());
  return bytes;
}

}  // namespace test
GLOO_NAMESPACE_END
