#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "algorithms/collective_names.h"
#include "algorithms/direct_sizes.h"
#include "algorithms/selection.h"
#include "gloo/internal/direct.h"
#include "tools/gloo_info/reports.h"

namespace gloo_info {
namespace {

namespace algorithms = gloo::algorithms;
using algorithms::Choice;
using algorithms::Collective;

constexpr size_t kLargest = size_t{1} << 30;
// What callers allow, unless they say otherwise.
constexpr size_t kMaxSegment = size_t{1} << 20;

// Sizes, from `first` to `last` bytes, with the same answer.
struct Range {
  size_t first = 0;
  size_t last = 0;
  const algorithms::AlgorithmInfo* algorithm = nullptr;
  size_t segmentBytes = 0;  // 0: not cut
  double firstSeconds = 0;
  double lastSeconds = 0;
};

class Decisions {
 public:
  Decisions(const algorithms::Selection& selection, int ranks)
      : selection_(selection), setting_{0, ranks, 0, 2, selection.hosts()} {}

  std::vector<Range> ranges(Collective collective) const {
    std::vector<Range> found{at(collective, 0)};
    if (!hasSizes(collective)) {
      return found;
    }
    for (size_t bytes = 1; bytes <= kLargest; bytes *= 2) {
      const Range next = at(collective, bytes);
      if (!same(found.back(), next)) {
        extend(collective, found, bytes);
      }
      grow(found.back(), next);
    }
    return found;
  }

 private:
  // That all ranks know.
  static bool hasSizes(Collective collective) {
    return collective != Collective::kBarrier &&
           collective != Collective::kGatherv &&
           collective != Collective::kAlltoallv;
  }

  Range at(Collective collective, size_t bytes) const {
    const Choice choice = selection_.choose(
        collective, setting_, bytes, nullptr, kMaxSegment, sizeof(float));
    // Where not all ranks know the size, any block may be longer.
    const bool cut = hasSizes(collective) ? choice.segmentBytes < bytes
                                          : collective != Collective::kBarrier;
    const size_t segment = cut ? choice.segmentBytes : 0;
    return {bytes,   bytes,          choice.algorithm,
            segment, choice.seconds, choice.seconds};
  }

  static bool same(const Range& a, const Range& b) {
    return a.algorithm == b.algorithm && a.segmentBytes == b.segmentBytes;
  }

  static void grow(Range& range, const Range& by) {
    range.last = by.last;
    range.lastSeconds = by.lastSeconds;
  }

  // Finds where the answers change between the last range and `bytes`.
  void extend(Collective collective, std::vector<Range>& found,
              size_t bytes) const {
    while (!same(found.back(), at(collective, bytes))) {
      size_t low = found.back().last;
      size_t high = bytes;
      while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        (same(found.back(), at(collective, middle)) ? low : high) = middle;
      }
      grow(found.back(), at(collective, low));
      found.push_back(at(collective, high));
    }
  }

  const algorithms::Selection& selection_;
  const algorithms::Setting setting_;
};

// Those that need none of the algorithms where all ranks share memory.
std::vector<std::string> directOnes(const algorithms::Selection& selection,
                                    const AlgorithmsOptions& options) {
  const bool shares =
      (options.transport == "shm" || options.transport == "auto") &&
      (options.ranksPerHost == 0 || options.ranksPerHost >= options.ranks) &&
      options.ranks <= gloo::internal::Direct::kMaxRanks;
  std::vector<std::string> names;
  for (const Collective collective : algorithms::collectives()) {
    algorithms::Request request;
    request.collective = collective;
    // All slots are long enough for such elements.
    if (shares && !selection.isForced(collective, nullptr) &&
        algorithms::offersDirect(request, options.ranks, SIZE_MAX)) {
      names.emplace_back(nameOf(collective));
    }
  }
  return names;
}

// Of the collectives in `names`; no limit: not among them.
nlohmann::json mostBytes(const algorithms::DirectParameters& parameters,
                         const std::vector<std::string>& names) {
  auto most = nlohmann::json::object();
  for (const std::string& name : names) {
    const size_t bytes = parameters.mostOf(*algorithms::findCollective(name));
    if (bytes != algorithms::DirectParameters::kUnlimited) {
      most[name] = bytes;
    }
  }
  return most;
}

std::string describe(const algorithms::DirectParameters::ByCores& bytes) {
  std::string text = gloo::MakeString(bytes.apart, " B");
  if (bytes.crowded != bytes.apart) {
    text +=
        gloo::MakeString(" (", bytes.crowded, " B where ranks share a core)");
  }
  return text;
}

// As in a tuning file; null: nothing runs direct.
nlohmann::json describe(const algorithms::DirectParameters& parameters,
                        const std::vector<std::string>& names) {
  if (names.empty()) {
    return nullptr;
  }
  nlohmann::json object{
      {"flat_bytes", parameters.flatBytes.apart},
      {"crowded_flat_bytes", parameters.flatBytes.crowded},
      {"rooted_bytes", parameters.rootedBytes.apart},
      {"crowded_rooted_bytes", parameters.rootedBytes.crowded},
      {"halved_bytes", parameters.halvedBytes},
      {"in_place_bytes", parameters.inPlaceBytes},
      {"read_bytes", parameters.readBytes},
      {"most_bytes", mostBytes(parameters, names)}};
  if (parameters.chunkBytes != algorithms::DirectParameters::kUnlimited) {
    object["chunk_bytes"] = parameters.chunkBytes;
  }
  return object;
}

void printDirect(std::ostream& out, int ranks,
                 const algorithms::DirectParameters& parameters,
                 const std::vector<std::string>& names) {
  out << "where all ranks share memory, these run direct, by none of the "
         "below, unless the caller names one:";
  for (const std::string& name : names) {
    out << " " << name;
  }
  if (ranks == 2) {
    out << "\n  allreduce in halves, where each rank has a core, from "
        << parameters.halvedBytes << " B";
  } else {
    out << "\n  allreduce flat up to " << describe(parameters.flatBytes)
        << ", reduce by the root alone up to "
        << describe(parameters.rootedBytes) << ", in slices above";
  }
  out << "; in memory of the shared allocator in place from "
      << parameters.inPlaceBytes
      << " B; alltoall by one copy of the kernel's, where that is permitted, "
         "from "
      << parameters.readBytes << " B; chunks of ";
  if (parameters.chunkBytes == algorithms::DirectParameters::kUnlimited) {
    out << "a slot";
  } else {
    out << "at most " << parameters.chunkBytes << " B";
  }
  const nlohmann::json most = mostBytes(parameters, names);
  for (const auto& item : most.items()) {
    out << "; " << item.key() << " by the links above " << item.value() << " B";
  }
  out << "\n";
}

void printHead(std::ostream& out, const AlgorithmsOptions& options,
               unsigned cores) {
  out << options.ranks << " ranks, " << options.transport << ", "
      << (cores == 0 ? "a core for each rank"
                     : std::to_string(cores) + " cores per host")
      << "; bytes: of the vector, or of all ranks' blocks together; us: as "
         "the model expects\n";
  if (options.transport == "tcp") {
    out << "a TCP device uses shared memory within a host, unless that is off; "
           "if all ranks share it: --transport shm\n";
  }
}

void printColumns(std::ostream& out) {
  char line[160];
  std::snprintf(line, sizeof(line), "%-18s %12s %12s  %-20s %12s %12s %12s\n",
                "collective", "from (B)", "to (B)", "algorithm", "segment (B)",
                "from (us)", "to (us)");
  out << line;
}

std::string microseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", seconds * 1e6);
  return text;
}

void printText(std::ostream& out, std::string_view collective,
               const std::vector<Range>& ranges) {
  for (const Range& range : ranges) {
    char line[160];
    std::snprintf(
        line, sizeof(line), "%-18s %12zu %12zu  %-20s %12s %12s %12s\n",
        std::string(collective).c_str(), range.first, range.last,
        std::string(range.algorithm->name).c_str(),
        range.segmentBytes == 0 ? "-"
                                : std::to_string(range.segmentBytes).c_str(),
        microseconds(range.firstSeconds).c_str(),
        microseconds(range.lastSeconds).c_str());
    out << line;
    collective = "";
  }
}

void addJson(nlohmann::json& rows, std::string_view collective,
             const std::vector<Range>& ranges) {
  for (const Range& range : ranges) {
    rows.push_back({{"collective", collective},
                    {"first_bytes", range.first},
                    {"last_bytes", range.last},
                    {"algorithm", range.algorithm->name},
                    {"segment_bytes", range.segmentBytes},
                    {"first_seconds", range.firstSeconds},
                    {"last_seconds", range.lastSeconds}});
  }
}

}  // namespace

void printAlgorithms(std::ostream& out, const AlgorithmsOptions& options) {
  if (!options.tuningFile.empty()) {
    setenv("GLOO_TUNING_FILE", options.tuningFile.c_str(), 1);
  }
  auto profile = gloo::internal::Profile::fromEnvironment();
  const int perHost =
      options.ranksPerHost > 0 ? options.ranksPerHost : options.ranks;
  for (int rank = 0; rank < options.ranks; rank++) {
    profile.hostOfRank.push_back(rank / perHost);
  }
  const algorithms::Selection selection(profile, options.ranks,
                                        options.transport);
  const Decisions decisions(selection, options.ranks);
  nlohmann::json rows = nlohmann::json::array();
  const auto direct = directOnes(selection, options);
  if (!options.json) {
    printHead(out, options, profile.cores);
    if (!direct.empty()) {
      printDirect(out, options.ranks, selection.direct(), direct);
    }
    printColumns(out);
  }
  for (const Collective collective : algorithms::collectives()) {
    const auto ranges = decisions.ranges(collective);
    if (options.json) {
      addJson(rows, nameOf(collective), ranges);
    } else {
      printText(out, nameOf(collective), ranges);
    }
  }
  if (options.json) {
    out << nlohmann::json{{"transport", options.transport},
                          {"ranks", options.ranks},
                          {"cores", profile.cores},
                          {"direct", direct},
                          {"direct_parameters",
                           describe(selection.direct(), direct)},
                          {"decisions", rows}}
               .dump(1)
        << "\n";
  }
}

}  // namespace gloo_info
