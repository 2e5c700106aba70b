#include "benchmarks/benchmark/seats.h"

#include <sched.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "gloo/internal/cores.h"

namespace benchmark {

std::vector<size_t> seatsOf(uint32_t draw, size_t round, size_t ranks,
                            size_t seats) {
  // The circle method: one stays if their number is even, the others move on.
  const size_t circle = ranks - (ranks % 2 == 0 ? 1 : 0);
  std::vector<size_t> names(ranks);
  std::iota(names.begin(), names.end(), size_t{0});
  std::seed_seq seed{draw, static_cast<uint32_t>(round / circle)};
  std::mt19937 random(seed);
  std::shuffle(names.begin(), names.end(), random);
  std::vector<size_t> order;
  if (circle < ranks) {
    order.push_back(circle);
  }
  const size_t first = round % circle;
  order.push_back(first);
  for (size_t i = 1; order.size() < ranks; i++) {
    order.push_back((first + i) % circle);
    order.push_back((first + circle - i) % circle);
  }
  std::vector<size_t> taken(ranks);
  for (size_t i = 0; i < ranks; i++) {
    taken[names[order[i]]] = i * seats / ranks;
  }
  return taken;
}

void takeSeat(uint32_t draw, size_t round, size_t rank, size_t ranks) {
  cpu_set_t all;
  if (sched_getaffinity(0, sizeof(all), &all) != 0) {
    return;
  }
  const auto seats = static_cast<size_t>(CPU_COUNT(&all));
  if (seats == 0 || ranks <= seats) {
    return;
  }
  const size_t seat = seatsOf(draw, round, ranks, seats)[rank];
  gloo::internal::moveToCore(gloo::internal::coreAt(all, seat), all);
}

}  // namespace benchmark
