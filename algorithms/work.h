// What the algorithms cost, as published; see Work in catalogue.h.
#pragma once

#include "algorithms/catalogue.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::work {

Work recursiveDoubling(const Setting& s);
Work halvingDoubling(const Setting& s);
Work allreduceRing(const Setting& s);
Work bcube(const Setting& s);
Work flatAllreduce(const Setting& s);

Work gatheredInOrder(const Setting& s);
Work collectedInOrder(const Setting& s);
Work scatteredInOrder(const Setting& s);

Work dissemination(const Setting& s);
Work binomial(const Setting& s);
Work scatterAllgather(const Setting& s);
Work chain(const Setting& s);

Work binomialReduce(const Setting& s);
Work rabenseifnerReduce(const Setting& s);

// Of scatter as well.
Work binomialGather(const Setting& s);

Work allgatherRing(const Setting& s);
Work neighbourExchange(const Setting& s);
Work allgatherDoubling(const Setting& s);
Work unevenBruck(const Setting& s);
Work allgatherBruck(const Setting& s);

Work reduceScatterRing(const Setting& s);
Work recursiveHalving(const Setting& s);

// One message to or from each other rank, none of which waits for another.
Work direct(const Setting& s);
Work directRooted(const Setting& s);  // one way
Work directReduce(const Setting& s);
Work alltoallBruck(const Setting& s);

// With a host map.
Work hierarchicalRing(const Setting& s);
Work hierarchicalDoubling(const Setting& s);
Work hierarchicalBroadcast(const Setting& s);
Work hierarchicalReduce(const Setting& s);
Work hierarchicalBarrier(const Setting& s);
Work hierarchicalAllgather(const Setting& s);
Work hierarchicalReduceScatter(const Setting& s);

}  // namespace algorithms::work
GLOO_NAMESPACE_END
