#include "algorithms/cost.h"

#include <algorithm>

#include "algorithms/executor.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// Shorter ones are all head.
constexpr size_t kLeastSegment = 4096;

// More than that only where latencies are long: the executor looks at all of
// them again and again.
constexpr int kUsualWindow = 32;

double segmentsOf(const Work& work, double bytes, size_t segmentBytes) {
  const double segment =
      std::min(bytes, static_cast<double>(std::max<size_t>(1, segmentBytes)));
  return segment > 0 ? work.moved * bytes / segment : 0;
}

// That a rank sends one after the other.
double messagesOf(const Work& work, double segments) {
  return std::max({work.rounds, work.messages, segments});
}

// Of what a rank sends and receives together, how much of one direction.
double directions(const Work& work) {
  return work.bothWays > 0 ? work.bothWays / work.moved : 2;
}

}  // namespace

double carrying(const Work& work, size_t bytes, const LinkParameters& link) {
  // A network carries both directions at once, a processor does not.
  const double moved = link.byProcessor ? directions(work) * work.moved +
                                              (link.sending - 1) * work.sentMore
                                        : work.moved;
  return moved * static_cast<double>(bytes) * link.gapPerByte;
}

double costOf(const Work& work, size_t bytes, size_t segmentBytes,
              const Costs& costs) {
  const LinkParameters& link = costs.link;
  const double n = static_cast<double>(bytes);
  const double segment =
      std::min(n, static_cast<double>(std::max<size_t>(1, segmentBytes)));
  const double segments = segmentsOf(work, n, segmentBytes);
  const double messages = messagesOf(work, segments);
  // Messages of one round overlap, all but the work of starting them.
  const double start =
      (link.byProcessor ? directions(work) : 1) * link.overhead;
  const double starts = (messages - work.rounds) * std::max(link.gap, start);
  // What is reduced arrives first. Of the two, segment by segment, the quicker
  // one is hidden but for a segment of each round, unless both keep the
  // processor busy.
  const double arriving = work.reduced * n * link.gapPerByte;
  const double reducing = work.reduced * n * costs.reducePerByte;
  const double pieces =
      work.rounds > 0 ? std::max(1.0, segments / work.rounds) : 1;
  const double exposed = link.byProcessor
                             ? reducing
                             : std::max(0.0, reducing - arriving) +
                                   std::min(arriving, reducing) / pieces;
  // Processors receive a segment, then pass it on.
  const double filling =
      work.fill * segment * link.gapPerByte * (link.byProcessor ? 2 : 1);
  return work.rounds * (link.latency + 2 * link.overhead) + starts +
         carrying(work, bytes, link) + filling + exposed +
         work.copied * n * costs.copyPerByte;
}

size_t bestSegment(const Work& work, size_t bytes, size_t maxSegmentBytes,
                   const Costs& costs) {
  constexpr double kWorthIt = 0.99;
  size_t best = std::max<size_t>(1, maxSegmentBytes);
  double least = costOf(work, bytes, best, costs);
  for (size_t segment = best / 2; segment >= kLeastSegment; segment /= 2) {
    const double seconds = costOf(work, bytes, segment, costs);
    if (seconds < kWorthIt * least) {
      best = segment;
      least = seconds;
    }
  }
  return best;
}

int windowFor(const Work& work, size_t bytes, size_t segmentBytes,
              const Costs& costs) {
  const LinkParameters& link = costs.link;
  const double n = static_cast<double>(bytes);
  const double segments = segmentsOf(work, n, segmentBytes);
  const double messages = messagesOf(work, segments);
  const double length = messages > 0 ? work.moved * n / messages : 0;
  const double each =
      std::max({link.gap, link.overhead, length * link.gapPerByte});
  const double latency = link.latency + 2 * link.overhead;
  constexpr double kMost = Executor::kMaxWindow;
  // Where processors move them, segments to and from several ranks at once have
  // to be in view for each of these: measured with bcube of 3, 5 and 7 ranks.
  const bool several = link.byProcessor && work.messages > work.rounds &&
                       segments > work.messages;
  const double wanted = each > 0 && !several ? 2 * (1 + latency / each) : kMost;
  return std::max(kUsualWindow, static_cast<int>(std::min(wanted, kMost)));
}

size_t stripFor(int ranks, const Costs& costs) {
  // Half of a core's second-level cache or less; measured over the loopback.
  constexpr size_t kLeast = size_t{1} << 20;
  constexpr size_t kLeastBlock = size_t{256} << 10;
  return costs.link.byProcessor
             ? std::max(kLeast, static_cast<size_t>(ranks) * kLeastBlock)
             : 0;
}

}  // namespace algorithms
GLOO_NAMESPACE_END
