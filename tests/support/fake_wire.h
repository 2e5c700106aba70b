// What lies between two fake links.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "gloo/config.h"
#include "tests/support/fake_link.h"
#include "transport/base/link.h"

GLOO_NAMESPACE_BEGIN
namespace test {

// One thing on its way: a frame, a write, or the end.
struct FakeEvent {
  enum class What { kFrame, kWrite, kEnd };
  What what = What::kFrame;
  transport::base::FrameHeader header;
  const char* borrowed = nullptr;  // the sender's memory until completion
  std::vector<char> copied;        // instead of borrowed
  size_t bytes = 0;
  transport::base::RemoteMemory remote;
  uint32_t immediate = 0;
  void* token = nullptr;
  // Of the receiving side.
  bool begun = false;
  bool dropped = false;   // taken back by the sender
  size_t done = 0;        // bytes moved so far
  char* place = nullptr;  // where to

  const char* from() const {
    return borrowed != nullptr ? borrowed : copied.data();
  }
};

// One end. Guarded by the wire's mutex.
struct FakeEnd {
  std::deque<std::shared_ptr<FakeEvent>> inbox;
  std::deque<void*> completions;  // tokens of this end
  std::function<void()> wake;     // of this end's device; may be empty
  bool present = false;           // has been made
  bool gone = false;              // abandoned: nothing of it may be touched
  bool ended = false;             // has queued its end
  bool endSeen = false;           // ... and the other has seen it
};

// Lock order: domain, wire, hub.
struct FakeWire {
  std::mutex mutex;
  FakeEnd ends[2];
  bool lost = false;
};

// Where the two ends, and registered memory, are found.
class FakeHub {
 public:
  static FakeHub& instance();

  uint64_t newId();
  // The same wire for (a, b) and (b, a).
  std::shared_ptr<FakeWire> wire(uint64_t a, uint64_t b);

  uint32_t add(char* ptr, size_t bytes, transport::base::Rights rights);
  void remove(uint32_t key);
  static uint64_t addressOf(uint32_t key) { return uint64_t{key} << 40; }
  // Copies to (or from) registered memory; false: outside of it.
  bool copy(transport::base::RemoteMemory remote, char* local, size_t bytes,
            bool write);

 private:
  struct Memory {
    char* ptr;
    size_t bytes;
    transport::base::Rights rights;
  };
  std::mutex mutex_;
  uint64_t ids_ = 0;
  uint32_t keys_ = 0;
  std::map<std::pair<uint64_t, uint64_t>, std::weak_ptr<FakeWire>> wires_;
  std::map<uint32_t, Memory> memory_;
};

}  // namespace test
GLOO_NAMESPACE_END
