#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "algorithms/verify/verify.h"
#include "gloo/common/string.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::verify {
namespace {

// Written without hazards.cc on purpose: byte by byte, and for all earlier
// actions that a path of waits leads to.
class RaceFinder {
 public:
  RaceFinder(const Program& program, const size_t (&sizes)[kMemories])
      : program_(program),
        waiter_(program.actions.size(), kNone),
        seen_(program.actions.size(), 0) {
    for (int m = 0; m < kMemories; m++) {
      bytes_[m].resize(sizes[m]);
    }
  }

  std::string find() {
    for (uint32_t i = 0; i < program_.actions.size(); i++) {
      if (!waitsForEarlierOnes(i)) {
        return MakeString("action ", i, " waits for itself or a later one");
      }
      const Action& a = program_.actions[i];
      if (a.kind != ActionKind::kRecv) {
        read(i, a.source, a.bytes);
      }
      if (a.kind == ActionKind::kReduce) {
        read(i, a.staged, a.bytes);
      }
      if (a.kind != ActionKind::kSend) {
        // Where it is part of the output, that is what is named.
        if (a.target.memory == Memory::kInput) {
          return MakeString("action ", i, " writes into the input");
        }
        write(i, a.target, a.bytes);
      }
      if (!error_.empty()) {
        return error_;
      }
    }
    return {};
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  // The last action that wrote it, and who has read it since: the last of them,
  // and where in readers_ the ones before are.
  struct Byte {
    uint32_t writer = kNone;
    uint32_t reader = kNone;
    uint32_t earlier = kNone;
  };
  struct Reader {
    uint32_t reader;
    uint32_t earlier;
  };

  // Also remembers them.
  bool waitsForEarlierOnes(uint32_t i) {
    const Action& a = program_.actions[i];
    const uint32_t* const waits = program_.waits.data() + a.firstWait;
    return std::all_of(waits, waits + a.waitCount, [this, i](uint32_t before) {
      if (before >= i) {
        return false;
      }
      waiter_[before] = i;
      return true;
    });
  }

  // Whether a path of waits leads from i back to `before`. Most often it is one
  // wait, and the next byte asks the same. Of i, waitsForEarlierOnes() was
  // asked last.
  bool isAncestor(uint32_t before, uint32_t i) {
    if (waiter_[before] == i || found_ == std::pair(before, i)) {
      return true;
    }
    search_++;
    open_.assign(1, i);
    while (!open_.empty()) {
      const Action& a = program_.actions[open_.back()];
      open_.pop_back();
      for (uint32_t w = 0; w < a.waitCount; w++) {
        const uint32_t wait = program_.waits[a.firstWait + w];
        if (wait == before) {
          found_ = {before, i};
          return true;
        }
        if (wait > before && seen_[wait] != search_) {
          seen_[wait] = search_;
          open_.push_back(wait);
        }
      }
    }
    return false;
  }

  void require(uint32_t before, uint32_t i, const char* what) {
    if (before != kNone && before != i && !isAncestor(before, i)) {
      error_ = MakeString("action ", i, what, " action ", before,
                          " may still be under way");
    }
  }

  std::vector<Byte>* range(Place place, size_t bytes) {
    auto& memory = bytes_[static_cast<size_t>(place.memory)];
    if (place.offset + bytes > memory.size()) {
      error_ = MakeString("byte ", place.offset + bytes, " of memory ",
                          static_cast<int>(place.memory), ", which has ",
                          memory.size());
      return nullptr;
    }
    return &memory;
  }

  void read(uint32_t i, Place place, size_t bytes) {
    auto* memory = range(place, bytes);
    for (size_t b = 0; memory != nullptr && b < bytes; b++) {
      Byte& byte = (*memory)[place.offset + b];
      require(byte.writer, i, " reads what is written while");
      if (byte.reader != kNone) {
        readers_.push_back({byte.reader, byte.earlier});
        byte.earlier = static_cast<uint32_t>(readers_.size() - 1);
      }
      byte.reader = i;
    }
  }

  void write(uint32_t i, Place place, size_t bytes) {
    auto* memory = range(place, bytes);
    for (size_t b = 0; memory != nullptr && b < bytes; b++) {
      Byte& byte = (*memory)[place.offset + b];
      require(byte.writer, i, " writes what is written while");
      require(byte.reader, i, " writes what is read while");
      for (uint32_t at = byte.earlier; at != kNone; at = readers_[at].earlier) {
        require(readers_[at].reader, i, " writes what is read while");
      }
      byte = {i, kNone, kNone};
    }
  }

  const Program& program_;
  std::vector<uint32_t> waiter_;  // the last action that waits for each
  // Of the search for an ancestor: by which an action was met last, and those
  // whose waits are still to be looked at.
  std::vector<uint32_t> seen_;
  uint32_t search_ = 0;
  std::vector<uint32_t> open_;
  std::pair<uint32_t, uint32_t> found_{kNone, kNone};  // the last path's ends
  std::array<std::vector<Byte>, kMemories> bytes_;
  std::vector<Reader> readers_;
  std::string error_;
};

}  // namespace

std::string findRace(const Program& program, const size_t (&sizes)[kMemories]) {
  return RaceFinder(program, sizes).find();
}

}  // namespace algorithms::verify
GLOO_NAMESPACE_END
