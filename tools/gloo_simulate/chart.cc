#include "tools/gloo_simulate/chart.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "tools/gloo_simulate/report.h"

namespace gloo_simulate {
namespace {

constexpr int kWidth = 360;  // of a panel's plot area, in pixels
constexpr int kHeight = 260;
constexpr int kLeft = 76;
constexpr int kTop = 78;
constexpr int kAcross = kWidth + 96;
constexpr int kDown = kHeight + 84;
constexpr const char* kColours[] = {"#d62728", "#1f77b4", "#2ca02c", "#9467bd",
                                    "#ff7f0e", "#17becf", "#8c564b", "#e377c2"};
const std::string kBound = "lower bound";

// Points of each algorithm: size or ranks, and seconds.
using Lines = std::map<std::string, std::map<double, double>>;

// Maps a logarithmic range to pixels.
struct Scale {
  double low = 1;
  double high = 10;
  double first = 0;
  double last = 1;

  double operator()(double value) const {
    const double span = std::max(std::log(high / low), 1e-9);
    return first + std::log(value / low) / span * (last - first);
  }
};

class Chart {
 public:
  Chart(const Options& options, const std::vector<Row>& rows)
      : rows_(rows), names_{kBound} {
    double least = 1e300;
    double most = 0;
    for (const Row& row : rows) {
      least = std::min({least, row.seconds, row.boundSeconds});
      most = std::max(most, row.seconds);
      names_.insert(row.algorithm);
    }
    low_ = std::pow(10, std::floor(std::log10(std::max(least, 1e-9))));
    high_ = std::pow(10, std::ceil(std::log10(std::max(most, 1e-9))));
    title_ = std::string(nameOf(options.collective)) + ", simulated";
  }

  std::string run() {
    std::map<double, Lines> byRanks;
    std::map<double, Lines> bySize;
    for (const Row& row : rows_) {
      const auto ranks = static_cast<double>(row.ranks);
      const auto bytes = static_cast<double>(std::max<size_t>(1, row.bytes));
      byRanks[ranks][row.algorithm][bytes] = row.seconds;
      byRanks[ranks][kBound][bytes] = row.boundSeconds;
      bySize[bytes][row.algorithm][ranks] = row.seconds;
      bySize[bytes][kBound][ranks] = row.boundSeconds;
    }
    int line = 0;
    addPanels(byRanks, line++, " ranks", "bytes", true);
    if (byRanks.size() > 1) {
      addPanels(bySize, line++, "", "ranks", false);
    }
    return frame(line);
  }

 private:
  void addPanels(const std::map<double, Lines>& panels, int line,
                 const std::string& unit, const std::string& axis, bool sizes) {
    int column = 0;
    for (const auto& [value, lines] : panels) {
      const std::string title =
          unit.empty() ? bytesText(static_cast<size_t>(value))
                       : std::to_string(static_cast<int>(value)) + unit;
      addPanel(lines, title, kLeft + column++ * kAcross, kTop + line * kDown,
               axis, sizes);
    }
    columns_ = std::max(columns_, column);
  }

  void addPanel(const Lines& lines, const std::string& title, int left, int top,
                const std::string& axis, bool sizes) {
    std::set<double> xs;
    for (const auto& [name, points] : lines) {
      for (const auto& [x, y] : points) {
        xs.insert(x);
      }
    }
    const Scale xOf{*xs.begin() / 1.5, *xs.rbegin() * 1.5,
                    static_cast<double>(left),
                    static_cast<double>(left + kWidth)};
    const Scale yOf{low_, high_, static_cast<double>(top + kHeight),
                    static_cast<double>(top)};
    text(left + kWidth / 2, top - 8, title);
    text(left + kWidth / 2, top + kHeight + 36, axis);
    for (double power = low_; power <= high_ * 1.01; power *= 10) {
      rule(left, yOf(power), left + kWidth, yOf(power));
      text(left - 34, yOf(power) + 4, shortTime(power));
    }
    double last = -1e9;
    for (const double x : xs) {
      rule(xOf(x), top, xOf(x), top + kHeight);
      if (xOf(x) - last >= 46) {  // names that would overlap are left out
        text(xOf(x), top + kHeight + 18,
             sizes ? bytesText(static_cast<size_t>(x))
                   : std::to_string(static_cast<int>(x)));
        last = xOf(x);
      }
    }
    for (const auto& [name, points] : lines) {
      addLine(name, points, xOf, yOf);
    }
  }

  void addLine(const std::string& name, const std::map<double, double>& points,
               const Scale& xOf, const Scale& yOf) {
    out_ << "<polyline fill=\"none\" stroke-width=\"1.8\" stroke=\""
         << colourOf(name) << "\""
         << (name == kBound ? " stroke-dasharray=\"5 4\"" : "") << " points=\"";
    for (const auto& [x, y] : points) {
      out_ << std::lround(xOf(x)) << "," << std::lround(yOf(std::max(y, low_)))
           << " ";
    }
    out_ << "\"/>\n";
    for (const auto& [x, y] : points) {
      out_ << "<circle r=\"3\" cx=\"" << std::lround(xOf(x)) << "\" cy=\""
           << std::lround(yOf(std::max(y, low_))) << "\" fill=\""
           << colourOf(name) << "\"/>\n";
    }
  }

  std::string frame(int lines) {
    std::ostringstream all;
    const int width =
        std::max(kLeft + columns_ * kAcross,
                 kLeft + static_cast<int>(names_.size() + 1) * 150);
    all << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width
        << "\" height=\"" << kTop + lines * kDown
        << "\" font-family=\"sans-serif\" font-size=\"11\" "
           "text-anchor=\"middle\"><rect width=\"100%\" height=\"100%\" "
           "fill=\"white\"/>\n<text x=\"20\" y=\"24\" font-size=\"16\" "
           "text-anchor=\"start\">"
        << title_ << "</text>\n";
    int x = 20;
    for (const std::string& name : names_) {
      all << "<path d=\"M" << x << " 44h24\" stroke-width=\"2\" stroke=\""
          << colourOf(name) << "\"/><text x=\"" << x + 30
          << "\" y=\"48\" text-anchor=\"start\">" << name << "</text>\n";
      x += 150;
    }
    all << out_.str() << "</svg>\n";
    return all.str();
  }

  std::string colourOf(const std::string& name) const {
    if (name == kBound) {
      return "#777777";
    }
    const auto at = std::distance(names_.begin(), names_.find(name));
    return kColours[static_cast<size_t>(at) % std::size(kColours)];
  }

  static std::string shortTime(double seconds) {
    std::ostringstream text;
    const double us = seconds * 1e6;
    if (us >= 1e6) {
      text << us / 1e6 << " s";
    } else if (us >= 1e3) {
      text << us / 1e3 << " ms";
    } else {
      text << us << " us";
    }
    return text.str();
  }

  void text(double x, double y, const std::string& content) {
    out_ << "<text x=\"" << std::lround(x) << "\" y=\"" << std::lround(y)
         << "\">" << content << "</text>\n";
  }

  void rule(double x1, double y1, double x2, double y2) {
    out_ << "<path stroke=\"#ddd\" d=\"M" << std::lround(x1) << " "
         << std::lround(y1) << "L" << std::lround(x2) << " " << std::lround(y2)
         << "\"/>\n";
  }

  const std::vector<Row>& rows_;
  std::set<std::string> names_;
  std::string title_;
  double low_ = 1e-6;
  double high_ = 1;
  int columns_ = 1;
  std::ostringstream out_;
};

}  // namespace

std::string chartOf(const Options& options, const std::vector<Row>& rows) {
  return Chart(options, rows).run();
}

}  // namespace gloo_simulate
