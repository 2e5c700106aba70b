// What a connected context really sends its bytes over.
#pragma once

#include <string>
#include <vector>

#include "gloo/rendezvous/context.h"

namespace support {

// A context that shows its transport, as any subclass may.
class MeasuredContext : public gloo::rendezvous::Context {
 public:
  using gloo::rendezvous::Context::Context;

  // The kinds of links to the other ranks, without repetition, in the order
  // of the ranks: {"shm", "tcp"}. Empty when there is no other rank.
  std::vector<std::string> links();
};

std::string join(const std::vector<std::string>& parts, char separator);

}  // namespace support
