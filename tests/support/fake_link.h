// Links between contexts of one process, without sockets: a stream, a pushing
// (verbs) and a pulling (shared memory) one. Frames arrive in order, but late,
// payloads in pieces, completions separately from what they complete; all of
// that is drawn from a seed. They check what the protocol above promises to a
// link, and can be made to fail.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "gloo/config.h"
#include "tests/support/spawn.h"
#include "transport/base/link.h"

GLOO_NAMESPACE_BEGIN
namespace test {

// kMixed: pulls at times, or is refused that, and else is a stream, as shared
// memory does.
enum class FakeShape { kStream, kPush, kPull, kMixed };
std::string name(FakeShape shape);
bool needsRegions(FakeShape shape);

// Shared by all devices of a test. Thread-safe.
struct FakeWatch {
  // Frames delivered to handlers, by any link.
  std::atomic<uint64_t> frames{0};
  // The link that delivers this frame is lost instead; 0: none is.
  std::atomic<uint64_t> loseAtFrame{0};
  // As above: this frame is altered on the way, or each; 0: none is.
  static constexpr uint64_t kEveryFrame = UINT64_MAX;
  std::atomic<uint64_t> alterAtFrame{0};
  std::function<void(transport::base::FrameHeader&)> alter;
  // Of messages, half of the bytes arrive and no more; that of one has.
  std::atomic<bool> holdHalfway{false};
  std::atomic<bool> isHalfway{false};
  // So many callers are told to call again.
  std::atomic<int> putOff{0};
  // So many links cannot even be prepared.
  std::atomic<int> unprepared{0};
  // There is no memory for preparing so many.
  std::atomic<int> noMemoryToPrepare{0};
  // So many links have no memory for their last frame.
  std::atomic<int> withoutMemory{0};
  // Largest number of eager bytes under way, and that were granted.
  std::atomic<uint64_t> mostEager{0};
  // Largest index of an advert.
  std::atomic<uint32_t> mostAdvert{0};
  // What the protocol must never do; counted.
  std::atomic<uint64_t> creditsExceeded{0};
  std::atomic<uint64_t> creditsNotWhole{0};  // parts of a quantum
  std::atomic<uint64_t> framesTooLong{0};
  std::atomic<uint64_t> wrongMemory{0};  // remote accesses outside of regions
  std::atomic<uint64_t> controlTooLong{0};

  uint64_t broken() const {
    return creditsExceeded + creditsNotWhole + framesTooLong + wrongMemory +
           controlTooLong;
  }
};

struct FakeOptions {
  FakeShape shape = FakeShape::kStream;
  uint64_t seed = 1;
  bool lazy = false;
  size_t eagerBytes = 1000;
  size_t creditBytes = 8000;
  size_t creditQuantum = 64;
  size_t maxFrameBytes = 5000;
  std::shared_ptr<FakeWatch> watch = std::make_shared<FakeWatch>();
};

// Devices whose links are fake; greetings go over loopback all the same.
DeviceMaker fakeDevices(const FakeOptions& options);

}  // namespace test
GLOO_NAMESPACE_END
