#include "tools/gloo_simulate/diagram.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "algorithms/hosts.h"
#include "algorithms/simulate/simulate.h"
#include "gloo/common/string.h"

namespace gloo_simulate {
namespace {

namespace algorithms = gloo::algorithms;
namespace simulate = gloo::algorithms::simulate;
using algorithms::Memory;
using gloo::MakeString;

struct Arrow {
  int from = 0;
  int to = 0;
  int round = 0;
  bool reduces = false;
  std::string blocks;
};

// How the blocks of an area are called.
class Names {
 public:
  Names(const algorithms::verify::Job& job, size_t segments)
      : job_(job), segments_(segments) {}

  std::string of(int rank, algorithms::Place place, size_t bytes) const {
    const std::string first = name(rank, place.memory, place.offset);
    const std::string last = name(rank, place.memory, place.offset + bytes - 1);
    return (place.memory == Memory::kScratch ? "s" : "") +
           (first == last ? first : first + "-" + last);
  }

 private:
  std::string name(int rank, Memory memory, size_t element) const {
    const size_t block = element / segments_;
    const algorithms::Layouts layouts = job_.layouts(rank);
    const int blocks = memory == Memory::kInput    ? layouts.input.blocks
                       : memory == Memory::kOutput ? layouts.output.blocks
                                                   : layouts.scratch.blocks;
    const bool perRank = job_.algorithm->blocks == nullptr;
    if (blocks == 1 && !perRank && segments_ > 1) {
      return std::to_string(element);
    }
    // Of collectives with a block for each rank, one alone is the rank's own.
    const std::string own = std::to_string(
        blocks == 1 && perRank ? static_cast<size_t>(rank) : block);
    return segments_ == 1 ? own
                          : own + "." + std::to_string(element % segments_);
  }

  const algorithms::verify::Job& job_;
  const size_t segments_;
};

std::vector<Arrow> arrowsOf(const Drawing& d) {
  const auto segments = static_cast<size_t>(d.segments);
  const auto hosts = algorithms::HostMap::ofEqualHosts(d.ranks, d.ranksPerHost);
  simulate::Scenario scenario =
      simulate::unitScenario(*d.algorithm, d.ranks, d.root, d.radix, &hosts);
  scenario.job.count *= segments;
  if (segments > 1) {
    scenario.job.options.segmentBytes = 1;
  }
  scenario.job.options.window = 64;
  const Names names(scenario.job, segments);
  std::vector<Arrow> arrows;
  simulate::Observer observer;
  observer.deed = [&](const simulate::Deed& deed) {
    if (deed.kind == simulate::Deed::kMessage) {
      arrows.push_back({deed.rank, deed.peer,
                        static_cast<int>(std::lround(deed.end)) - 1,
                        deed.target.memory == Memory::kStage,
                        names.of(deed.rank, deed.source, deed.bytes)});
    }
  };
  simulate::simulate(scenario, observer);
  std::stable_sort(
      arrows.begin(), arrows.end(), [](const Arrow& a, const Arrow& b) {
        return std::pair(a.round, a.from) < std::pair(b.round, b.from);
      });
  return arrows;
}

std::string titleOf(const Drawing& d) {
  std::ostringstream out;
  out << nameOf(d.algorithm->collective) << " by " << d.algorithm->name << ", "
      << d.ranks << " ranks";
  if (d.ranksPerHost > 1) {
    out << ", " << d.ranksPerHost << " per host";
  }
  return out.str();
}

int roundsIn(const std::vector<Arrow>& arrows) {
  return arrows.empty() ? 0 : arrows.back().round + 1;
}

// Of an SVG, in pixels.
constexpr int kLeft = 44;
constexpr int kTop = 56;
constexpr int kAcross = 66;
constexpr int kDown = 50;
constexpr int kArrowDown = kDown - 8;

int xOf(int rank) { return kLeft + 20 + rank * kAcross; }
int yOf(int round) { return kTop + round * kDown; }

void drawGrid(std::ostream& out, const Drawing& d, int rounds) {
  for (int rank = 0; rank < d.ranks; rank++) {
    out << "<path class=\"g\" d=\"M" << xOf(rank) << " " << yOf(0) << "V"
        << yOf(rounds) << "\"/><text x=\"" << xOf(rank) << "\" y=\""
        << yOf(0) - 8 << "\">" << rank << "</text>\n";
  }
  for (int round = 0; round < rounds; round++) {
    out << "<text class=\"n\" x=\"" << kLeft - 10 << "\" y=\""
        << yOf(round) + kDown / 2 + 4 << "\">" << round + 1 << "</text>\n";
  }
}

void drawArrow(std::ostream& out, const Arrow& a) {
  out << "<path class=\"" << (a.reduces ? "r" : "m") << "\" d=\"M"
      << xOf(a.from) << " " << yOf(a.round) + 3 << "l"
      << xOf(a.to) - xOf(a.from) << " " << kArrowDown << "\"/>\n";
}

// On white, near the sender: further on, arrows cross.
void drawLabel(std::ostream& out, const Arrow& a) {
  const int width = xOf(a.to) - xOf(a.from);
  const double at = 17.0 / std::abs(width);
  const long x = xOf(a.from) + std::lround(width * at);
  const long y = yOf(a.round) + 3 + std::lround(kArrowDown * at);
  const auto half = static_cast<long>(a.blocks.size() * 3 + 1);
  out << "<rect x=\"" << x - half << "\" y=\"" << y - 5 << "\" width=\""
      << 2 * half << "\" height=\"11\"/><text x=\"" << x << "\" y=\"" << y + 4
      << "\">" << a.blocks << "</text>\n";
}

}  // namespace

std::string textOf(const Drawing& d) {
  const std::vector<Arrow> arrows = arrowsOf(d);
  std::map<std::pair<int, int>, std::string> cells;
  const auto add = [&](int round, int rank, const std::string& text) {
    std::string& cell = cells[{round, rank}];
    cell += (cell.empty() ? "" : " ") + text;
  };
  for (const Arrow& a : arrows) {
    add(a.round, a.from, MakeString(">", a.to, ":", a.blocks));
  }
  for (const Arrow& a : arrows) {
    add(a.round, a.to,
        MakeString("<", a.from, ":", a.blocks, a.reduces ? "+" : ""));
  }
  size_t width = 9;
  for (const auto& [where, cell] : cells) {
    width = std::max(width, cell.size());
  }
  std::ostringstream out;
  const auto column = [&](std::string text) {
    text.resize(std::max(width, text.size()), ' ');
    out << "  " << text;
  };
  const int rounds = roundsIn(arrows);
  out << titleOf(d) << ", " << rounds << " rounds\n"
      << ">1:0-3 sends blocks 0 to 3 to rank 1; <1:0-3 receives them, + and "
         "adds them to its own;\ns2: block 2 of the memory that is not the "
         "caller's\n\nround";
  for (int rank = 0; rank < d.ranks; rank++) {
    column("rank " + std::to_string(rank));
  }
  for (int round = 0; round < rounds; round++) {
    const std::string number = std::to_string(round + 1);
    out << "\n"
        << std::string(5 - std::min<size_t>(5, number.size()), ' ') << number;
    for (int rank = 0; rank < d.ranks; rank++) {
      column(cells[{round, rank}]);
    }
  }
  std::string text = out.str() + "\n";
  // No blanks at the ends of lines.
  for (size_t at; (at = text.find(" \n")) != std::string::npos;) {
    text.erase(at, 1);
  }
  return text;
}

std::string svgOf(const Drawing& d) {
  const std::vector<Arrow> arrows = arrowsOf(d);
  const int rounds = roundsIn(arrows);
  std::ostringstream out;
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\""
      << std::max(xOf(d.ranks - 1) + 40, 360) << "\" height=\""
      << yOf(rounds) + 16 << "\" font-family=\"sans-serif\">\n"
      << "<style>path{fill:none;stroke-width:1.6}.g{stroke:#bbb}"
         ".m{stroke:#1f77b4;marker-end:url(#m)}"
         ".r{stroke:#d62728;marker-end:url(#r)}"
         "rect{fill:#fff}text{font-size:11px;text-anchor:middle}.n{fill:#777}"
         ".t{font-size:14px;text-anchor:start}</style>\n<defs>";
  for (const char* const kind : {"m\" fill=\"#1f77b4", "r\" fill=\"#d62728"}) {
    out << "<marker id=\"" << kind
        << "\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" "
           "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" "
           "style=\"fill:inherit\"/></marker>";
  }
  out << "</defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
      << "<text class=\"t\" x=\"10\" y=\"20\">" << titleOf(d) << "</text>\n";
  drawGrid(out, d, rounds);
  for (const Arrow& arrow : arrows) {
    drawArrow(out, arrow);
  }
  for (const Arrow& arrow : arrows) {
    drawLabel(out, arrow);
  }
  out << "</svg>\n";
  return out.str();
}

}  // namespace gloo_simulate
