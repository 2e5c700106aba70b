// The times of contestants that took turns, round after round.
#pragma once

#include <cstddef>
#include <vector>

namespace benchmark {

// What a host does besides comes and goes: it may make one round twice as long
// as the next. Contestants are therefore compared within a round, where it
// makes all of them slower alike. One thread.
class Turns {
 public:
  explicit Turns(size_t contestants) : times_(contestants) {}

  // Seconds of the contestant's turn in the next round. A contestant has a turn
  // in each round, or in none.
  void add(size_t contestant, double seconds) {
    times_[contestant].push_back(seconds);
  }

  // How many times as long as `other` a contestant takes: the median over the
  // rounds. Both have had turns.
  double ratio(size_t contestant, size_t other) const;

  // The median of the contestant's turns. It has had some.
  double seconds(size_t contestant) const;

 private:
  std::vector<std::vector<double>> times_;
};

}  // namespace benchmark
