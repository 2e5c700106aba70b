// Memory that a rank of a soak keeps for its peers, from one step to the next.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gloo/config.h"
#include "gloo/context.h"
#include "gloo/transport/buffer.h"
#include "gloo/transport/remote_key.h"
#include "gloo/transport/unbound_buffer.h"
#include "tests/multiprocess/soak_plan.h"

GLOO_NAMESPACE_BEGIN
namespace test {

// Bound buffers to the right neighbour, and notes to the left one that they may
// be written again.
class BoundRing {
 public:
  // All ranks make that of a stream before its first step.
  BoundRing(const std::shared_ptr<Context>& context, uint64_t stream);

  // In some pieces.
  void shift(const Step& step);

 private:
  static constexpr size_t kMost = 20000;

  const int rank_;
  const int size_;
  uint64_t said_ = 0;
  uint64_t heard_ = 0;
  std::vector<uint64_t> sent_ = std::vector<uint64_t>(kMost);
  std::vector<uint64_t> got_ = std::vector<uint64_t>(kMost);
  std::unique_ptr<transport::Buffer> in_;
  std::unique_ptr<transport::Buffer> out_;
  std::unique_ptr<transport::Buffer> noteIn_;
  std::unique_ptr<transport::Buffer> noteOut_;
};

// Memory that every rank has exported to all others.
class ExportedMemory {
 public:
  // All ranks make that of a stream before its first step.
  ExportedMemory(std::shared_ptr<Context> context, uint64_t stream);

  // Each rank writes to, or reads from, some part of another one's.
  void put(const Step& step);
  void get(const Step& step);

 private:
  static constexpr size_t kMost = 20000;

  // A step's part of the memory, with an element on either side that nobody
  // writes; by which rank, and of which one.
  struct Part {
    size_t begin;
    size_t elements;
    int user;
    int owner;
  };
  Part partOf(const Step& step) const;
  void say(int peer, const Step& step);
  void hear(int peer, const Step& step);

  const std::shared_ptr<Context> context_;
  std::vector<uint64_t> shared_ = std::vector<uint64_t>(kMost);
  std::vector<uint64_t> own_ = std::vector<uint64_t>(kMost);
  std::unique_ptr<transport::UnboundBuffer> sharedBuffer_;
  std::unique_ptr<transport::UnboundBuffer> ownBuffer_;
  std::unique_ptr<transport::UnboundBuffer> notes_;
  std::vector<std::unique_ptr<transport::RemoteKey>> keys_;  // by rank
};

}  // namespace test
GLOO_NAMESPACE_END
