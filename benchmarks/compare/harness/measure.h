// What every program of the comparison does alike: the work, the clock, the
// check of the results and the form of the report. It depends on no library, so
// that each program adds only how it calls its own.
//
// One iteration: every rank rewrites its whole input; barrier; clock (ticks.h);
// the collective; a read of each cache line of the result; clock; barrier. The
// time of an iteration is the mean of its ranks' times. (With more ranks than
// cores all clocks start when the barrier opens: see page.h.)
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace measure {

struct Arguments {
  int rank = -1;  // the launcher's, where the program is not given them
  int size = -1;
  std::string directory;  // shared by the job, empty when it starts
  std::string mode;       // the program's own; empty: its default
  std::string transport;  // tcp, shm or ibverbs
  std::string device;     // of ibverbs
  std::vector<std::string> collectives;
  std::vector<size_t> sizes;  // bytes
  size_t offset = 0;          // bytes, of vectors from the beginning of a page
  double budget = 0.2;        // seconds for each collective, size and mode
};

// `modes`: those that --mode may name. Prints one line to stderr and exits with
// status 2 when the arguments make no sense.
Arguments parse(int argc, char** argv, const std::vector<std::string>& modes);

// A collective on one vector size, or "pingpong" of two ranks: `roundTrips`
// times rank 0 sends its input to rank 1's output, which rank 1 sends to rank
// 0's output; the time is that of one way. `bytes` is the size of the larger of
// input and output of a rank; at least one element for each rank.
struct Work {
  std::string collective;
  size_t bytes = 0;
  size_t inputElements = 0;
  size_t outputElements = 0;
  size_t blockElements = 0;  // per rank, where the vector is divided
  int roundTrips = 0;        // of a pingpong
  float* input = nullptr;    // = output where the collective works in place, or
                             // the program says so
  float* output = nullptr;
};

using Operation = std::function<void()>;

class Program {
 public:
  virtual ~Program() = default;
  // The ways in which it can do this collective; none: it cannot.
  virtual std::vector<std::string> modes(const std::string& collective) = 0;
  // Made once for a Work; called for each iteration. Runs until it returns.
  virtual Operation prepare(const Work& work, const std::string& mode) = 0;
  // Whether it leaves the result of this collective at the front of the input,
  // where others write to an output of its own.
  virtual bool resultInInput(const std::string&) { return false; }
  // What the bytes really travel over, as a list separated by '+'.
  virtual std::string links() = 0;
  // Memory for one vector, zeroed; valid until the next call with this index.
  virtual float* allocate(int index, size_t bytes);
  virtual void release();

 private:
  float* memory_[2] = {nullptr, nullptr};
};

// Measures everything asked for; rank 0 prints a JSON object per line. Returns
// the exit status: 1 after an error or a wrong result, which stderr explains.
int run(Program& program, const Arguments& arguments);

// Throws if what was printed has nowhere to go (a full disk, say: the error may
// be an earlier call's, so errno does not tell).
void flushOutput();

}  // namespace measure
