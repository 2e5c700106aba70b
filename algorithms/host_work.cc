#include "algorithms/host_work.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "algorithms/action_stream.h"
#include "algorithms/hosts.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// Of a host; more are like those.
constexpr int kMostRanks = 64;

// Of the others on a rank's processor each looks for a message first.
double turnOn(int host, const Setting& setting,
              const NetworkParameters& network) {
  const double ranks = setting.hosts->ranksOn(host);
  return network.coresPerHost > 0
             ? std::max(0.0, ranks / network.coresPerHost - 1) *
                   network.switching
             : 0;
}

// Counts the steps of one rank.
class Counter {
 public:
  Counter(const AlgorithmInfo& algorithm, const Setting& setting,
          const Counts& counts, size_t elementSize, size_t segmentBytes,
          const NetworkParameters& network)
      : setting_(setting),
        layouts_(layoutsOf(algorithm, setting, counts)),
        elementSize_(static_cast<double>(elementSize)),
        segment_(std::max<size_t>(1, segmentBytes / elementSize)),
        network_(network),
        turn_(turnOn(setting.hosts->hostOf(setting.rank), setting, network)) {
    const Schedule schedule = algorithm.schedule(setting);
    for (int i = 0; i < schedule.steps(); i++) {
      add(schedule.step(i));
    }
    if (arriving_) {
      wait(1);
    }
  }

  // What a rank has of something, and what of it is between hosts.
  struct Share {
    double all = 0;
    double crossing = 0;
  };

  double processor = 0;  // seconds
  double out = 0;        // of the card
  double in = 0;
  Share bytes;
  Share messages;

 private:
  void add(const Step& step) {
    const bool sends = step.kind == StepKind::kSend;
    switch (step.kind) {
      case StepKind::kIdle:
        return;
      case StepKind::kSend:
      case StepKind::kRecv:
      case StepKind::kRecvReduce:
        message(step, sends ? step.source : step.target);
        break;
      default:
        measure(step.target);
        processor += bytes_ > 0 ? network_.localStep : 0;
        break;
    }
    if (step.kind == StepKind::kCopy) {
      processor += bytes_ * network_.copyPerByte;
    } else if (step.kind == StepKind::kRecvReduce ||
               step.kind == StepKind::kReduce) {
      processor += bytes_ * network_.reducePerByte;
    }
  }

  void message(const Step& step, const Blocks& blocks) {
    measure(blocks);
    if (messages_ == 0) {
      return;
    }
    const HostMap& hosts = *setting_.hosts;
    const bool crosses = hosts.hostOf(step.peer) != hosts.hostOf(setting_.rank);
    const LinkParameters& link = crosses ? network_.between : network_.inside;
    const double busy = bytes_ * link.gapPerByte;
    processor += messages_ * link.overhead + (link.byProcessor ? busy : 0);
    const bool sends = step.kind == StepKind::kSend;
    count(crosses);
    if (crosses) {
      (sends ? out : in) += std::max(busy, messages_ * link.gap);
    }
    if (!sends) {
      arrives(blocks);
    } else if (waitsFor(blocks)) {
      // What is passed on comes segment by segment.
      wait(messages_);
    }
  }

  void count(bool crosses) {
    messages.all += messages_;
    bytes.all += bytes_;
    if (crosses) {
      messages.crossing += messages_;
      bytes.crossing += bytes_;
    }
  }

  // What has come since the last wait is, roughly, one range of each area.
  void arrives(const Blocks& blocks) {
    Range& range = arrived_[static_cast<size_t>(blocks.area)];
    const Range all = rangeOf(blocks);
    range = {std::min(range.begin, all.begin), std::max(range.end, all.end)};
    arriving_ = true;
  }

  bool waitsFor(const Blocks& blocks) const {
    const Range& range = arrived_[static_cast<size_t>(blocks.area)];
    const Range wanted = rangeOf(blocks);
    return range.begin < wanted.end && wanted.begin < range.end;
  }

  void wait(double times) {
    processor += times * turn_;
    arrived_.fill({});
    arriving_ = false;
  }

  struct Range {
    int begin = std::numeric_limits<int>::max();
    int end = -1;
  };

  Range rangeOf(const Blocks& blocks) const {
    const int all = layoutOf(layouts_, blocks.area).blocks;
    const bool wraps = blocks.first + blocks.count > all;
    return wraps ? Range{0, all}
                 : Range{blocks.first, blocks.first + blocks.count};
  }

  void measure(const Blocks& blocks) {
    size_t messages = 0;
    size_t elements = 0;
    for (const Piece& piece :
         piecesOf(layoutOf(layouts_, blocks.area), blocks)) {
      messages += ceilDivide(piece.elements, segment_);
      elements += piece.elements;
    }
    messages_ = static_cast<double>(messages);
    bytes_ = static_cast<double>(elements) * elementSize_;
  }

  const Setting setting_;
  const Layouts layouts_;
  const double elementSize_;
  const size_t segment_;  // elements
  const NetworkParameters& network_;
  const double turn_;                     // seconds
  std::array<Range, kMemories> arrived_;  // by area
  bool arriving_ = false;
  // Of the blocks measured last.
  double messages_ = 0;
  double bytes_ = 0;
};

// Of the ranks that have most.
class Part {
 public:
  void add(const Counter::Share& share) {
    all_ = std::max(all_, share.all);
    crossing_ = std::max(crossing_, share.crossing);
    inside_ = std::max(inside_, share.all - share.crossing);
  }
  double crossing() const { return of(crossing_); }
  double inside() const { return of(inside_); }

 private:
  double of(double part) const { return all_ > 0 ? part / all_ : 0; }

  double all_ = 0;
  double crossing_ = 0;
  double inside_ = 0;
};

bool isPerRank(const AlgorithmInfo& algorithm) {
  return algorithm.blocks == nullptr;
}

}  // namespace

HostWork busiestHost(const AlgorithmInfo& algorithm, const Setting& setting,
                     size_t bytes, size_t elementSize, size_t segmentBytes,
                     const NetworkParameters& network) {
  const HostMap& hosts = *setting.hosts;
  Counts counts;
  counts.count = ceilDivide(bytes, elementSize);
  if (isPerRank(algorithm)) {
    counts.count = ceilDivide(counts.count, static_cast<size_t>(setting.size));
  }
  int largest = 0;
  for (int host = 1; host < hosts.hosts(); host++) {
    largest = hosts.ranksOn(host) > hosts.ranksOn(largest) ? host : largest;
  }
  const int rootHost = hosts.hostOf(setting.root);
  HostWork most;
  Part moved, messages;
  for (const int host :
       std::set{0, hosts.hosts() / 2, hosts.hosts() - 1, largest, rootHost}) {
    const int ranks = hosts.ranksOn(host);
    const int taken = std::min(ranks, kMostRanks);
    std::set<int> sample;
    for (int i = 0; i < taken; i++) {
      sample.insert(hosts.rankAt(host, i * ranks / taken));
    }
    if (host == rootHost) {
      sample.insert(setting.root);
    }
    double processor = 0, out = 0, in = 0;
    const double each =
        static_cast<double>(ranks - (host == rootHost)) /
        std::max(1.0, static_cast<double>(sample.size()) - (host == rootHost));
    for (const int rank : sample) {
      Setting its = setting;
      its.rank = rank;
      const Counter c(algorithm, its, counts, elementSize, segmentBytes,
                      network);
      const double times = rank == setting.root ? 1 : each;
      moved.add(c.bytes);
      messages.add(c.messages);
      processor += times * c.processor;
      out += times * c.out;
      in += times * c.in;
    }
    most.processorSeconds = std::max(most.processorSeconds, processor);
    most.cardSeconds = std::max({most.cardSeconds, out, in});
  }
  most.crossingMoved = moved.crossing();
  most.crossingMessages = messages.crossing();
  most.insideMoved = moved.inside();
  most.insideMessages = messages.inside();
  return most;
}

}  // namespace algorithms
GLOO_NAMESPACE_END
