// A page of memory that the measured processes of one job share: a barrier that
// is the same for every program, and where the ranks leave their times.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace measure {

constexpr int kMaxRanks = 32;

// Maps the file `path`; the first rank makes it. Each job uses a new directory,
// so it starts as zeros. One thread per process.
class Page {
 public:
  Page(const std::string& path, int rank, int size);
  ~Page();
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  // Returns when all ranks are here; throws when one of them has failed, or
  // has not come within a minute.
  void barrier();

  // When the clock of an iteration starts, after the barrier before it. Where
  // there are more ranks than cores that is when the last of them came to it,
  // for all of them: a rank whose core the others keep busy with the operation
  // waits for it, and its own clock would not have started yet. Else when this
  // one left it: now.
  uint64_t start() const;

  // Makes the other ranks' barriers throw.
  void fail();

  // This rank's time of the current iteration, and after a barrier the mean of
  // all ranks.
  void setTime(double ticks);
  double meanTime() const;

  // Rank 0's decisions; the others read them after a barrier.
  void setStop(bool stop);
  bool stop() const;
  void setDropped(uint32_t modes);
  uint32_t dropped() const;

  // A value with its sequence number, from one rank to another, in its own
  // cache lines; two slots, to be used in turn.
  struct alignas(128) Cell {
    std::atomic<uint64_t> sequence;
    float value;
  };
  Cell& cell(int slot, int from, int to);

 private:
  struct Layout;

  Layout* layout_;
  int rank_;
  int size_;
  bool crowded_;  // more ranks than cores
  int patience_;  // checks of a flag before each check also yields
};

}  // namespace measure
