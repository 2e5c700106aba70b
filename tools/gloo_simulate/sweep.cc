#include "tools/gloo_simulate/sweep.h"

#include <algorithm>
#include <map>
#include <utility>

#include "algorithms/action_stream.h"
#include "algorithms/simulate/bound.h"
#include "gloo/common/error.h"
#include "gloo/common/string.h"

namespace gloo_simulate {
namespace {

namespace algorithms = gloo::algorithms;
namespace simulate = gloo::algorithms::simulate;
using algorithms::AlgorithmInfo;
using gloo::MakeString;

// As the library's calls allow without asking for other ones.
constexpr size_t kMaxSegmentBytes = size_t{1} << 20;

class Sweep {
 public:
  Sweep(const Options& options,
        const std::function<void(const std::string&)>& note,
        const std::function<void(const std::string&)>& progress)
      : options_(options), note_(note), progress_(progress) {}

  std::vector<Row> run() {
    for (const int ranks : options_.ranks) {
      if (options_.collective == algorithms::Collective::kBarrier) {
        addRows(ranks, 1);
        continue;
      }
      for (const size_t bytes : options_.sizes) {
        addRows(ranks, bytes);
      }
    }
    return std::move(rows_);
  }

 private:
  void addRows(int ranks, size_t bytes) {
    algorithms::Tuning tuning = options_.tuning;
    tuning.network = networkOf(options_, ranks);
    const algorithms::Selection selection(tuning, ranks, options_.segmentBytes);
    const algorithms::Setting setting{0, ranks, options_.root, options_.radix,
                                      selection.hosts()};
    const auto infos = algorithms::algorithmsOf(options_.collective);
    const simulate::Scenario scenario =
        scenarioOf(options_, infos.front(), ranks, bytes);
    const size_t known = knownBytes(scenario);
    const size_t elementSize = scenario.job.options.elementSize;
    const auto choice =
        selection.choose(options_.collective, setting, known, nullptr,
                         maxSegmentBytes(), elementSize);
    for (const AlgorithmInfo& info : infos) {
      const bool chosen = &info == choice.algorithm;
      if (options_.algorithm == "auto" ? !chosen
                                       : options_.algorithm != "all" &&
                                             options_.algorithm != info.name) {
        continue;
      }
      if (!info.offers(setting)) {
        if (options_.algorithm != "all") {
          note_(MakeString(info.name, " does not work for ", ranks, " ranks, ",
                           options_.tuning.network.ranksPerHost,
                           " per host (--ranks-per-host)"));
        }
        continue;
      }
      const auto estimate = selection.estimate(info, setting, known,
                                               maxSegmentBytes(), elementSize);
      add(estimate, setting, bytes, chosen);
    }
  }

  // Who asks for longer segments allows them.
  size_t maxSegmentBytes() const {
    return std::max(kMaxSegmentBytes, options_.segmentBytes);
  }

  // What all ranks know of it, which is what a choice may depend on.
  static size_t knownBytes(const simulate::Scenario& scenario) {
    const algorithms::Collective c = scenario.job.algorithm->collective;
    return c == algorithms::Collective::kGatherv ||
                   c == algorithms::Collective::kAlltoallv
               ? 0
               : totalBytes(scenario);
  }

  void add(const algorithms::Choice& choice, const algorithms::Setting& setting,
           size_t bytes, bool chosen) {
    const AlgorithmInfo& info = *choice.algorithm;
    const int ranks = setting.size;
    simulate::Scenario scenario = scenarioOf(options_, info, ranks, bytes);
    scenario.job.hosts = setting.hosts;
    scenario.job.options.segmentBytes = choice.segmentBytes;
    scenario.job.options.stripBytes = choice.stripBytes;
    scenario.job.options.window =
        options_.window != 0 ? options_.window : choice.window;
    if (takesMore(scenario, options_.mostActions)) {
      note_(MakeString(info.name, " is left out for ", ranks, " ranks and ",
                       bytes, " bytes: more than ", options_.mostActions / 1e6,
                       " million actions (--most-actions)"));
      return;
    }
    simulate::Observer observer;
    observer.progress = [&](uint64_t actions) {
      progress_(MakeString(info.name, ", ", ranks, " ranks, ", bytes,
                           " bytes: ", actions / 1000000, " million actions"));
    };
    const simulate::Result result = simulate::simulate(scenario, observer);
    const size_t total = totalBytes(scenario);
    const simulate::Bound bound =
        simulate::lowerBound(info.collective, ranks, total, scenario.network);
    // A barrier's messages are of one byte, which is nobody's data.
    const size_t carried =
        info.collective == algorithms::Collective::kBarrier ? 0 : total;
    rows_.push_back({std::string(info.name), chosen, ranks, carried,
                     choice.segmentBytes, result.seconds, bound.seconds(),
                     std::string(bound.term()), roundsOf(info, setting),
                     result.busiestBytes, result.messages});
  }

  // Of the vector, or of all ranks' blocks together.
  static size_t totalBytes(const simulate::Scenario& scenario) {
    const algorithms::verify::Job& job = scenario.job;
    return job.count * job.options.elementSize *
           (job.algorithm->blocks == nullptr ? static_cast<size_t>(job.size)
                                             : 1);
  }

  // Whether it takes more actions: messages sent, messages received, copies and
  // reductions, segment by segment. A step of no bytes counts as well: it is
  // none, but has to be looked at.
  static bool takesMore(const simulate::Scenario& scenario, double most) {
    const algorithms::verify::Job& job = scenario.job;
    double actions = 0;
    for (int rank = 0; rank < job.size; rank++) {
      actions += job.algorithm->schedule(job.setting(rank)).steps();
    }
    for (int rank = 0; rank < job.size && actions <= most; rank++) {
      const auto schedule = job.algorithm->schedule(job.setting(rank));
      const algorithms::Layouts layouts = job.layouts(rank);
      for (int i = 0; i < schedule.steps() && actions <= most; i++) {
        actions += furtherActions(schedule.step(i), layouts, job.options);
      }
    }
    return actions > most;
  }

  // Those of a step, less one.
  static double furtherActions(const algorithms::Step& step,
                               const algorithms::Layouts& layouts,
                               const algorithms::ExpandOptions& options) {
    using algorithms::StepKind;
    if (step.kind == StepKind::kIdle) {
      return 0;
    }
    const algorithms::Blocks& blocks =
        step.kind == StepKind::kSend ? step.source : step.target;
    const size_t longest =
        std::max<size_t>(1, options.segmentBytes / options.elementSize);
    size_t actions = 0;
    for (const algorithms::Piece& piece :
         piecesOf(layoutOf(layouts, blocks.area), blocks)) {
      actions += algorithms::ceilDivide(piece.elements, longest);
    }
    actions *= step.kind == StepKind::kRecvReduce ? 2 : 1;
    return static_cast<double>(std::max<size_t>(1, actions) - 1);
  }

  int roundsOf(const AlgorithmInfo& info, const algorithms::Setting& s) {
    const auto [it, isNew] = rounds_.try_emplace({&info, s.size}, 0);
    if (isNew) {
      it->second = simulate::roundsOf(info, s.size, s.root, s.radix, s.hosts);
    }
    return it->second;
  }

  const Options& options_;
  const std::function<void(const std::string&)>& note_;
  const std::function<void(const std::string&)>& progress_;
  std::vector<Row> rows_;
  std::map<std::pair<const AlgorithmInfo*, int>, int> rounds_;
};

}  // namespace

algorithms::NetworkParameters networkOf(const Options& options, int ranks) {
  algorithms::NetworkParameters network = options.tuning.network;
  if (options.oneHost) {
    network.ranksPerHost = ranks;
    network.inside = network.between;
  }
  return network;
}

simulate::Scenario scenarioOf(const Options& options,
                              const AlgorithmInfo& algorithm, int ranks,
                              size_t bytes) {
  simulate::Scenario scenario;
  algorithms::verify::Job& job = scenario.job;
  job.algorithm = &algorithm;
  job.size = ranks;
  job.root = options.root;
  job.radix = options.radix;
  // The library's barrier is of one byte, which says nothing.
  job.options.elementSize =
      algorithm.collective == algorithms::Collective::kBarrier
          ? 1
          : options.elementSize;
  job.options.stageBytes = size_t{2} << 20;
  job.options.inPlace = options.inPlace;
  const size_t elements =
      algorithms::ceilDivide(bytes, job.options.elementSize);
  job.count =
      algorithm.blocks != nullptr
          ? elements
          : algorithms::ceilDivide(elements, static_cast<size_t>(ranks));
  scenario.network = networkOf(options, ranks);
  scenario.slowRank = options.slowRank;
  scenario.slowFactor = options.slowFactor;
  return scenario;
}

std::vector<Row> sweep(
    const Options& options, const std::function<void(const std::string&)>& note,
    const std::function<void(const std::string&)>& progress) {
  return Sweep(options, note, progress).run();
}

}  // namespace gloo_simulate
