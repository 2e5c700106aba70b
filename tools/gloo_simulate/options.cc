#include "tools/gloo_simulate/options.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "algorithms/collective_names.h"
#include "algorithms/hosts.h"
#include "tools/gloo_simulate/networks.h"
#include "tools/support/parse.h"

namespace gloo_simulate {
namespace {

namespace algorithms = gloo::algorithms;

// The texts of options that need more than their target.
struct Raw {
  std::string collective = "allreduce";
  std::vector<std::string> sizes{"8", "64K", "1M", "64M"};
  std::string network = "datacentre";
  std::string inside = "memory";
  std::string segment;
  double alpha = 0;
  double overhead = 0;
  double gap = 0;
  double bandwidth = 0;
  double reduction = 0;
  double copy = 0;
  double mostActions = 100;
  bool outOfPlace = false;
};

void addWhat(CLI::App& app, Options& options, Raw& raw) {
  app.add_option("-c,--collective", raw.collective,
                 "allreduce, broadcast, ...; allreduce");
  app.add_option("-a,--algorithm", options.algorithm,
                 "one by name, or auto: what the library chooses, or all; all");
  app.add_option("-n,--ranks", options.ranks, "2 to 16384; 8 (16,256: both)")
      ->delimiter(',');
  app.add_option("-s,--sizes", raw.sizes,
                 "bytes of the vector, or of all ranks' blocks together (at "
                 "least an element each): 8, 64K, 1M, 1G; 8,64K,1M,64M")
      ->delimiter(',');
  app.add_option("--root", options.root, "0");
  app.add_option("--radix", options.radix, "of bcube; 2");
  app.add_option("--element-size", options.elementSize, "bytes; 4");
  app.add_option("--segment", raw.segment,
                 "bytes of a pipeline segment; else as the library chooses");
  app.add_option(
      "--window", options.window,
      "actions in view per rank, 4 to 64; 0: as the library chooses");
  app.add_flag("--out-of-place", raw.outOfPlace,
               "input and output are different memory");
}

void addNetwork(CLI::App& app, Options& options, Raw& raw) {
  app.add_option("--network", raw.network, "see below; datacentre");
  app.add_option("--alpha", raw.alpha,
                 "us of a message: latency and both overheads");
  app.add_option("--overhead", raw.overhead,
                 "us of processor time per message on each side");
  app.add_option("--gap", raw.gap, "us between two messages, at least");
  app.add_option("--bandwidth", raw.bandwidth, "GB/s (10^9 bytes)");
  app.add_option("--reduction", raw.reduction, "GB/s that a rank reduces");
  app.add_option("--copy", raw.copy, "GB/s that a rank copies");
  app.add_option("--ranks-per-host", options.tuning.network.ranksPerHost,
                 "they share the host's link; 1, or all with a network within "
                 "a host");
  app.add_option("--cores", options.tuning.network.coresPerHost,
                 "processors that the ranks of a host share; 0: one for each");
  app.add_option("--inside", raw.inside,
                 "network within a host of several ranks; memory");
  app.add_option("--slow-rank", options.slowRank, "a rank that is slower");
  app.add_option("--slow-factor", options.slowFactor,
                 "by how much; 2 with --slow-rank");
}

void addReport(CLI::App& app, Options& options, Raw& raw) {
  app.add_option("--json", options.jsonFile, "also write the rows to this file")
      ->check(command_line::isName());
  app.add_option("--plot", options.plotFile,
                 "time against size and against ranks, as SVG")
      ->check(command_line::isName());
  app.add_option("--most-actions", raw.mostActions,
                 "leave out what takes more messages sent and received, copies "
                 "and reductions, in millions; 100");
  app.add_flag("--text", options.text,
               "print the schedule of --algorithm for the first of --ranks, "
               "and simulate nothing");
  app.add_option("--draw", options.drawFile, "the same as SVG: a drawing")
      ->check(command_line::isName());
  app.add_option("--draw-segments", options.drawSegments,
                 "segments of each block there; 1");
  app.add_option("--check", options.checkFiles,
                 "--json files of the benchmark, with --all-algorithms or with "
                 "each algorithm forced in turn (GLOO_ALGORITHM): is the "
                 "predicted order right wherever "
                 "measured times differ by over 25 %?");
  app.add_option("--docs", options.docsFolder,
                 "write algorithms.md and its pictures into this folder")
      ->check(command_line::isName());
}

double positive(const CLI::App& app, const char* option, double value) {
  if (app.count(option) > 0 && !(value > 0 && value < 1e9)) {
    throw UsageError(std::string(option) + " must be above 0 and below 1e9");
  }
  return value;
}

// Options that were given replace what the named network has.
void takeNetwork(const CLI::App& app, const Raw& raw, Options& options) {
  const NamedNetwork& named = networkNamed(raw.network);
  algorithms::NetworkParameters& network = options.tuning.network;
  const auto [ranksPerHost, coresPerHost] =
      std::pair(network.ranksPerHost, network.coresPerHost);
  options.tuning = named.tuning;
  network.ranksPerHost = ranksPerHost;
  network.coresPerHost = coresPerHost;
  network.inside = networkNamed(raw.inside).tuning.network.between;
  algorithms::LinkParameters& link = network.between;
  options.oneHost = named.isHost && app.count("--ranks-per-host") == 0;
  const double alpha = app.count("--alpha") > 0
                           ? positive(app, "--alpha", raw.alpha) * 1e-6
                           : link.latency + 2 * link.overhead;
  if (app.count("--overhead") > 0) {
    link.overhead = raw.overhead * 1e-6;
  }
  if (!(link.overhead >= 0 && 2 * link.overhead <= alpha)) {
    throw UsageError("two overheads are more than alpha, or less than 0");
  }
  link.latency = alpha - 2 * link.overhead;
  if (app.count("--gap") > 0) {
    link.gap = positive(app, "--gap", raw.gap) * 1e-6;
  }
  if (app.count("--bandwidth") > 0) {
    link.gapPerByte = 1e-9 / positive(app, "--bandwidth", raw.bandwidth);
  }
  if (app.count("--reduction") > 0) {
    network.reducePerByte = 1e-9 / positive(app, "--reduction", raw.reduction);
  }
  if (app.count("--copy") > 0) {
    network.copyPerByte = 1e-9 / positive(app, "--copy", raw.copy);
  }
}

void require(bool holds, const std::string& text) {
  if (!holds) {
    throw UsageError(text);
  }
}

// `why`: why the others would change nothing.
void allowOnly(const CLI::App& app, const std::set<std::string>& allowed,
               const std::string& why) {
  for (const CLI::Option* option : app.get_options()) {
    require(option->count() == 0 || allowed.count(option->get_name()) > 0,
            why + ": not with " + option->get_name());
  }
}

bool isOne(const std::string& algorithm) {
  return algorithm != "all" && algorithm != "auto";
}

// Of what is drawn or simulated.
void refuseOptionsOfOthers(const CLI::App& app, const Options& options) {
  require(app.count("--root") == 0 || hasRoot(options.collective),
          std::string(nameOf(options.collective)) +
              " has no root: leave out --root");
  const bool one = isOne(options.algorithm);
  if (one && !findAlgorithm(options.collective, options.algorithm)) {
    return;  // validate() says that there is no such algorithm
  }
  const auto infos = algorithms::algorithmsOf(options.collective);
  require(app.count("--radix") == 0 ||
              std::any_of(infos.begin(), infos.end(),
                          [&](const algorithms::AlgorithmInfo& info) {
                            return info.usesRadix &&
                                   (!one || options.algorithm == info.name);
                          }),
          "--radix is of allreduce by bcube: leave it out");
}

// Nobody should wait for a file that is not written, or believe that a check
// was of what it was not of.
void refuseIgnored(const CLI::App& app, const Options& options) {
  if (app.count("--docs") > 0) {
    allowOnly(app, {"--docs"}, "--docs goes with no other option");
  }
  if (app.count("--check") > 0) {
    for (const char* option :
         {"--collective", "--algorithm", "--ranks", "--sizes", "--json",
          "--plot", "--text", "--draw", "--draw-segments"}) {
      require(app.count(option) == 0,
              std::string("--check takes what its files have, and prints: not "
                          "with ") +
                  option);
    }
  }
  require(app.count("--draw-segments") == 0 ||
              app.count("--draw") + app.count("--text") > 0,
          "--draw-segments goes with --draw or --text");
  if (app.count("--text") + app.count("--draw") > 0) {
    allowOnly(
        app,
        {"--text", "--draw", "--draw-segments", "--collective", "--algorithm",
         "--ranks", "--ranks-per-host", "--root", "--radix"},
        "--text and --draw tell a schedule, which is the same on every "
        "network and for all sizes, and has no times");
  }
  if (app.count("--check") == 0) {
    refuseOptionsOfOthers(app, options);
  }
  // (None or fewer is a mistake that validate() names.)
  require(
      app.count("--inside") == 0 || options.tuning.network.ranksPerHost != 1,
      "--inside goes with several ranks per host: give --ranks-per-host");
}

void take(const CLI::App& app, const Raw& raw, Options& options) {
  options.collective = collectiveNamed(raw.collective);
  require(options.collective != algorithms::Collective::kBarrier ||
              app.count("--sizes") + app.count("--element-size") == 0,
          "a barrier has no --sizes and no --element-size");
  options.sizes.clear();
  for (const std::string& size : raw.sizes) {
    options.sizes.push_back(parseBytes(size));
    require(options.sizes.back() > 0, "--sizes: at least a byte each");
  }
  if (options.ranks.empty()) {
    options.ranks = {8};
  }
  if (!raw.segment.empty()) {
    options.segmentBytes = parseBytes(raw.segment);
    require(options.segmentBytes > 0, "--segment: at least a byte");
  }
  options.inPlace = !raw.outOfPlace;
  options.mostActions = positive(app, "--most-actions", raw.mostActions) * 1e6;
  if (options.slowRank >= 0 && app.count("--slow-factor") == 0) {
    options.slowFactor = 2;
  }
  takeNetwork(app, raw, options);
}

void validate(const Options& o) {
  if (o.checkFiles.empty()) {
    requireRanks(o);
  }
  require(o.root >= 0, "--root is no rank");
  require(o.slowRank >= -1, "--slow-rank is no rank");
  require(o.slowFactor > 0 && o.slowFactor <= 1e6,
          "--slow-factor: above 0, and up to 1e6");
  require(o.slowRank >= 0 || o.slowFactor == 1,
          "--slow-factor needs --slow-rank");
  require(o.radix >= 2, "--radix: at least 2");
  require(o.window == 0 || (o.window >= 4 && o.window <= 64),
          "--window: 4 to 64");
  require(o.elementSize >= 1 && o.elementSize <= 4096,
          "--element-size: 1 to 4096");
  require(o.tuning.network.ranksPerHost >= 1, "--ranks-per-host: at least 1");
  require(o.tuning.network.coresPerHost >= 0, "--cores: at least 1, or 0");
  require(o.drawSegments >= 1 && o.drawSegments <= 16,
          "--draw-segments: 1 to 16");
  const bool one = isOne(o.algorithm);
  if (one && findAlgorithm(o.collective, o.algorithm) == nullptr) {
    std::string names;
    for (const auto& info : algorithms::algorithmsOf(o.collective)) {
      names += (names.empty() ? "" : ", ") + std::string(info.name);
    }
    throw UsageError(std::string(nameOf(o.collective)) + " has no algorithm '" +
                     o.algorithm + "'; it has " + names);
  }
  if (o.text || !o.drawFile.empty()) {
    require(one, "--text and --draw need --algorithm");
    const int ranks = o.ranks.front();
    require(ranks <= 64, "--text and --draw: at most 64 ranks");
    const auto hosts =
        algorithms::HostMap::ofEqualHosts(ranks, o.tuning.network.ranksPerHost);
    require(findAlgorithm(o.collective, o.algorithm)
                ->offers({0, ranks, o.root, o.radix, &hosts}),
            o.algorithm + " does not work for " + std::to_string(ranks) +
                " ranks, " + std::to_string(o.tuning.network.ranksPerHost) +
                " per host (--ranks-per-host)");
  }
}

}  // namespace

void requireRanks(const Options& options) {
  for (const int ranks : options.ranks) {
    require(ranks >= 2 && ranks <= kMostRanks, "--ranks: 2 to 16384");
    require(options.root < ranks, "--root is no rank");
    require(options.slowRank < ranks, "--slow-rank is no rank");
  }
}

size_t parseBytes(const std::string& text) {
  static const std::string kUnits = "KMG";
  size_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  std::string unit(rest, end);
  for (const char* suffix : {"iB", "B"}) {
    if (unit.ends_with(suffix)) {
      unit.erase(unit.size() - std::string(suffix).size());
      break;
    }
  }
  const size_t power = unit.empty() ? 0 : kUnits.find(unit) + 1;
  if (error != std::errc() || unit.size() > 1 || power > 3 ||
      (power == 0 && !unit.empty()) || value > kMostBytes >> (10 * power)) {
    throw UsageError("'" + text +
                     "' is not a number of bytes such as 8, 64K, "
                     "1M or 1G, up to 1024G");
  }
  return value << (10 * power);
}

algorithms::Collective collectiveNamed(const std::string& name) {
  const auto collective = algorithms::findCollective(name);
  if (!collective) {
    throw UsageError(algorithms::noCollective(name));
  }
  return *collective;
}

Options parseOptions(int argc, const char* const* argv) {
  CLI::App app(
      "Simulates the library's algorithms on a network that exists only as "
      "numbers, and draws their schedules.",
      "gloo_simulate");
  Options options;
  Raw raw;
  app.set_help_flag("-h,--help", "print this text");
  app.footer("\n" + describeNetworks());
  addWhat(app, options, raw);
  addNetwork(app, options, raw);
  addReport(app, options, raw);
  command_line::parse(app, argc, argv);
  take(app, raw, options);
  refuseIgnored(app, options);
  validate(options);
  return options;
}

}  // namespace gloo_simulate
