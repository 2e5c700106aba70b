// Exit status: 0, 1 after an error of the run, 2 for a bad command line.
#include <cstdio>
#include <exception>

#include "benchmarks/benchmark/options.h"
#include "benchmarks/benchmark/runner.h"
#include "benchmarks/benchmark/spawn.h"

int main(int argc, char** argv) {
  try {
    const auto options = benchmark::parseOptions(argc, argv);
    if (options.localRanks != 0) {
      return benchmark::runLocalRanks(options);
    }
    benchmark::runRank(options);
    return 0;
  } catch (const benchmark::HelpRequest& help) {
    std::fputs(help.text.c_str(), stdout);
    return 0;
  } catch (const benchmark::UsageError& error) {
    std::fprintf(stderr, "benchmark: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "benchmark: %s\n", error.what());
    return 1;
  }
}
