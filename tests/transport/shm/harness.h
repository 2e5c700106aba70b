// Rings in ordinary memory, and links whose other end is held by the test.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gloo/config.h"
#include "transport/shm/link.h"

GLOO_NAMESPACE_BEGIN
namespace test {

// One ring.
class RingStorage {
 public:
  RingStorage(uint32_t cells, uint32_t bytes);
  const transport::shm::RingMemory& memory() const { return ring_; }

 private:
  struct alignas(128) Block {
    char bytes[128];
  };
  std::vector<Block> storage_;
  transport::shm::RingMemory ring_;
};

// Notes what a link tells it; payloads go to `place`.
class Notes : public transport::base::LinkHandler {
 public:
  char* onPayload(const transport::base::FrameHeader& header) override;
  void onFrame(const transport::base::FrameHeader& header,
               const char* payload) override;
  void onBound(uint32_t index, uint64_t offset, const char* payload,
               size_t bytes) override;
  void onWritten(uint32_t) override {}
  void onComplete(void* token) override { completed.push_back(token); }
  void onReadRefused(void* token) override { refused.push_back(token); }
  void onLost(internal::Cause cause, bool ended) override;

  std::vector<char> place;
  std::vector<std::string> payloads;
  std::vector<std::string> bound;  // index@offset:payload
  std::vector<void*> completed;
  std::vector<void*> refused;
  std::string lost;  // why; empty: it is not
  bool ended = false;
  std::function<void()> whenLost = [] {};
};

// A link, and the other end of its segment and socket.
struct HalfLink {
  // Which reads `memory`, not that of the test's end.
  explicit HalfLink(transport::shm::ProcessMemory memory = {}, pid_t pid = 0);
  void poll() { poller.poll(); }

  Notes notes;
  transport::shm::ShmPoller poller;
  std::shared_ptr<transport::shm::Segment> segment;
  transport::base::UniqueFd otherSocket;
  std::unique_ptr<transport::shm::ShmLink> link;
};

// A whole eager message.
transport::base::FrameHeader eager(uint64_t number, size_t bytes);

}  // namespace test
GLOO_NAMESPACE_END
