// Which ranks of a host share a processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace benchmark {

// By rank: one of `seats`, each of which has as many ranks as any other, or one
// more. In successive rounds of a draw ranks meet others as in a tournament;
// another draw has them meet in another order. Equal in all processes of a
// program. There are as many ranks as seats at least, and a seat.
std::vector<size_t> seatsOf(uint32_t draw, size_t round, size_t ranks,
                            size_t seats);

// Puts a rank of this host, all of which call it alike, on a processor by
// seatsOf; from there the system may move it. Nothing where each has a
// processor for itself, or where the system does not let them be moved.
void takeSeat(uint32_t draw, size_t round, size_t rank, size_t ranks);

}  // namespace benchmark
