#include "tools/gloo_simulate/report.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace gloo_simulate {

std::string bytesText(size_t bytes) {
  static const char* const kUnits[] = {"B", "KiB", "MiB", "GiB"};
  int unit = 0;
  while (unit < 3 && bytes >= 1024 && bytes % 1024 == 0) {
    bytes /= 1024;
    unit++;
  }
  return std::to_string(bytes) + " " + kUnits[unit];
}

std::string timeText(double seconds) {
  char text[32];
  const double us = seconds * 1e6;
  if (us >= 1e6) {
    std::snprintf(text, sizeof(text), "%.3f s", us / 1e6);
  } else if (us >= 1e3) {
    std::snprintf(text, sizeof(text), "%.3f ms", us / 1e3);
  } else {
    std::snprintf(text, sizeof(text), "%.2f us", us);
  }
  return text;
}

void printTable(const Options& options, const std::vector<Row>& rows) {
  const auto& network = options.tuning.network;
  const auto& link = network.between;
  std::printf(
      "%s; alpha %g us (overhead %g us), gap %g us, %.4g GB/s, reduction %.4g "
      "GB/s, copy %.4g GB/s",
      std::string(nameOf(options.collective)).c_str(),
      (link.latency + 2 * link.overhead) * 1e6, link.overhead * 1e6,
      link.gap * 1e6, 1e-9 / link.gapPerByte, 1e-9 / network.reducePerByte,
      1e-9 / network.copyPerByte);
  if (network.ranksPerHost > 1) {
    std::printf(", %d ranks per host", network.ranksPerHost);
  }
  if (options.oneHost) {
    std::printf(", all on one host");
  }
  if (network.coresPerHost > 0) {
    std::printf(", whose ranks share %d processors", network.coresPerHost);
  }
  if (options.slowRank >= 0) {
    std::printf(", rank %d is %g times slower", options.slowRank,
                options.slowFactor);
  }
  std::printf("\n* is what the library chooses\n\n");
  std::printf("%6s %12s   %-19s %12s %12s %-10s %6s %7s %14s %12s\n", "ranks",
              "size", "algorithm", "time", "bound", "", "ratio", "rounds",
              "busiest (B)", "segment");
  for (const Row& row : rows) {
    std::printf("%6d %12s %c %-19s %12s %12s %-10s %6.2f %7d %14zu %12s\n",
                row.ranks, bytesText(row.bytes).c_str(), row.chosen ? '*' : ' ',
                row.algorithm.c_str(), timeText(row.seconds).c_str(),
                timeText(row.boundSeconds).c_str(), row.boundTerm.c_str(),
                row.ratio(), row.rounds, row.busiestBytes,
                bytesText(row.segmentBytes).c_str());
  }
}

void writeJson(const Options& options, const std::vector<Row>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const Row& row : rows) {
    list.push_back({{"collective", nameOf(options.collective)},
                    {"algorithm", row.algorithm},
                    {"chosen", row.chosen},
                    {"ranks", row.ranks},
                    {"bytes", row.bytes},
                    {"segment_bytes", row.segmentBytes},
                    {"time_us", row.seconds * 1e6},
                    {"bound_us", row.boundSeconds * 1e6},
                    {"bound_term", row.boundTerm},
                    {"ratio", row.ratio()},
                    {"rounds", row.rounds},
                    {"busiest_bytes", row.busiestBytes},
                    {"messages", row.messages}});
  }
  writeText(options.jsonFile, list.dump(1) + "\n");
}

namespace {

[[noreturn]] void throwUnwritable(const std::string& name) {
  throw std::runtime_error("cannot write " + name + ": " +
                           std::strerror(errno));
}

}  // namespace

void requireWritable(const std::string& name) {
  if (!std::ofstream(name, std::ios::app).is_open()) {
    throwUnwritable(name);
  }
}

void writeText(const std::string& name, const std::string& text) {
  std::ofstream file(name, std::ios::binary);
  file << text;
  file.close();
  if (!file) {
    throwUnwritable(name);
  }
}

}  // namespace gloo_simulate
