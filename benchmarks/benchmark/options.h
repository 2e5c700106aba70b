// The command line.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/support/command_line.h"

namespace benchmark {

struct Options {
  // Who takes part.
  int localRanks = 0;  // --ranks: start that many processes here; 0: do not
  int size = 0;
  int rank = -1;
  std::string redisHost;
  int redisPort = 6379;
  std::string prefix = "prefix";
  std::string sharedPath;
  std::string storeUrl;  // as rendezvous::openStore takes it

  // Over what.
  std::string transport = "auto";
  bool sync = false;
  bool busyPoll = false;
  std::vector<std::string> tcpDevices;
  std::vector<std::string> ibDevices;
  int ibPort = 1;
  int ibIndex = -1;
  std::optional<size_t> ibEagerBytes;  // else as the library has it

  // What.
  std::string name;
  bool verify = true;
  bool showAllErrors = false;
  int inputs = 1;
  std::optional<size_t> elements;  // none: a sweep of sizes
  bool halfPrecision = false;
  bool sharedMemory = false;  // vectors from the shared allocator
  int destinations = 1;
  int base = 2;
  int messages = 100;
  int threads = 1;
  bool allAlgorithms = false;  // compare them with the library's choice
  std::string tuneFile;        // --tune: measure, and write this
  size_t largestBytes = size_t{64} << 20;  // of both

  // How long.
  int warmupIterations = 5;
  std::optional<size_t> iterationCount;
  std::optional<std::chrono::nanoseconds> iterationTime;

  // How it is told.
  bool nanos = false;
  std::string jsonFile;
};

inline bool comparesAlgorithms(const Options& options) {
  return options.allAlgorithms || !options.tuneFile.empty();
}

using command_line::HelpRequest;
using command_line::UsageError;

// Throws UsageError or HelpRequest.
Options parseOptions(int argc, const char* const* argv);

// "2s", "500ms", "10us", "0.5s", "1m". Throws UsageError.
std::chrono::nanoseconds parseDuration(const std::string& text);

}  // namespace benchmark
