#include "algorithms/simulate/bound.h"

#include <algorithm>
#include <cmath>

GLOO_NAMESPACE_BEGIN
namespace algorithms::simulate {
namespace {

double alphaOf(const LinkParameters& link) {
  return link.latency + 2 * link.overhead;
}

// Of a byte that a rank sends or receives, whichever is less.
double leastPerByte(const LinkParameters& link) {
  const double part =
      link.byProcessor ? std::min(link.sending, 2 - link.sending) : 1;
  return part * link.gapPerByte;
}

// The same of a rank that has both links, over any of them or over both at
// once: one processor moves a byte at a time, but a port does not wait.
double leastPerByte(const LinkParameters& a, const LinkParameters& b) {
  const double first = leastPerByte(a);
  const double second = leastPerByte(b);
  const double both = first + second;
  return (a.byProcessor && b.byProcessor) || both == 0 ? std::min(first, second)
                                                       : first * second / both;
}

// What one of n ranks has to send or receive, as a part of all bytes.
double leastMoved(Collective collective, double n) {
  switch (collective) {
    case Collective::kBarrier:
      return 0;
    case Collective::kBroadcast:
    case Collective::kReduce:
      return n > 1 ? 1 : 0;
    case Collective::kAllreduce:
      return 2 * (n - 1) / n;
    default:
      return (n - 1) / n;
  }
}

// The same of one of several hosts, whose ranks are one rank as far as others
// are concerned: all have `most` of the n ranks, but for one that may have
// fewer, `fewest`.
double leastMovedByHost(Collective collective, double n, double most,
                        double fewest) {
  // With `own` ranks on the host.
  const auto elsewhere = [n](double own) { return (n - own) / n; };
  switch (collective) {
    case Collective::kAllgather:
    case Collective::kAllgatherv:
    case Collective::kReduceScatter:
    case Collective::kReduceScatterv:
      return elsewhere(fewest);
    case Collective::kScatter:
    case Collective::kGather:
    case Collective::kGatherv:
      return elsewhere(most);  // wherever the root is
    case Collective::kAlltoall:
    case Collective::kAlltoallv:
      // The bytes are what one rank sends: a host sends that of all of its own.
      return std::max(most * elsewhere(most), fewest * elsewhere(fewest));
    default:
      return leastMoved(collective, std::ceil(n / most));
  }
}

}  // namespace

double Bound::seconds() const {
  return std::max({latency, bandwidth, reduction});
}

std::string_view Bound::term() const {
  const double most = seconds();
  return most == latency     ? "latency"
         : most == bandwidth ? "bandwidth"
                             : "reduction";
}

Bound lowerBound(Collective collective, int size, size_t bytes,
                 const NetworkParameters& network) {
  const double n = size;
  const double all = static_cast<double>(bytes);
  Bound bound;
  if (isReduction(collective)) {
    bound.reduction = (n - 1) / n * all * network.reducePerByte;
  }
  const LinkParameters& between = network.between;
  if (network.ranksPerHost == 1) {
    bound.latency = ceilLog2(size) * alphaOf(between);
    bound.bandwidth = leastMoved(collective, n) * all * leastPerByte(between);
    return bound;
  }
  const LinkParameters& inside = network.inside;
  const int perHost = std::min(size, network.ranksPerHost);
  const int hosts = (size + perHost - 1) / perHost;
  const int fewest = size - (hosts - 1) * perHost;
  // In the time of a message, all ranks of a host reach one other host each.
  int levels = 0;
  for (int64_t reached = 1; reached < hosts; reached *= perHost + 1) {
    levels++;
  }
  const bool one = hosts == 1;
  bound.latency = std::max(
      ceilLog2(size) *
          (one ? alphaOf(inside) : std::min(alphaOf(inside), alphaOf(between))),
      levels * alphaOf(between));
  bound.bandwidth =
      std::max(leastMoved(collective, n) * all *
                   (one ? leastPerByte(inside) : leastPerByte(inside, between)),
               leastMovedByHost(collective, n, perHost, fewest) * all *
                   between.gapPerByte);
  return bound;
}

}  // namespace algorithms::simulate
GLOO_NAMESPACE_END
