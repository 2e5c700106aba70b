// Exit status: 0, 1 after an error of the run, 2 for a bad command line.
#include "benchmarks/benchmark/options.h"
#include "benchmarks/benchmark/runner.h"
#include "benchmarks/benchmark/spawn.h"

int main(int argc, char** argv) {
  return command_line::run("benchmark", [&] {
    const auto options = benchmark::parseOptions(argc, argv);
    if (options.localRanks != 0) {
      return benchmark::runLocalRanks(options);
    }
    benchmark::runRank(options);
    return 0;
  });
}
