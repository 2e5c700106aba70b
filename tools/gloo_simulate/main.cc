// Simulates, draws and documents the library's algorithms. Exit status: 0, 1
// after an error or if --check finds an order that is wrong, has no prediction
// for a time or nothing to compare, 2 for a bad command line.
#include <unistd.h>

#include <cstdio>

#include "tools/gloo_simulate/chart.h"
#include "tools/gloo_simulate/check.h"
#include "tools/gloo_simulate/diagram.h"
#include "tools/gloo_simulate/documents.h"
#include "tools/gloo_simulate/options.h"
#include "tools/gloo_simulate/report.h"
#include "tools/gloo_simulate/sweep.h"

namespace {

using gloo_simulate::Drawing;
using gloo_simulate::Options;

// A line on a terminal that the next one replaces.
void showProgress(const std::string& text) {
  if (isatty(STDERR_FILENO) == 1) {
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
  }
}

void showNote(const std::string& note) {
  showProgress("");
  std::fprintf(stderr, "gloo_simulate: %s\n", note.c_str());
}

void runSweep(const Options& options) {
  // Before minutes of simulating. What is there stays until there is more.
  for (const std::string& name : {options.jsonFile, options.plotFile}) {
    if (!name.empty()) {
      gloo_simulate::requireWritable(name);
    }
  }
  const auto rows = gloo_simulate::sweep(options, showNote, showProgress);
  showProgress("");
  printTable(options, rows);
  if (!options.jsonFile.empty()) {
    writeJson(options, rows);
  }
  if (!options.plotFile.empty()) {
    gloo_simulate::writeText(options.plotFile, chartOf(options, rows));
  }
}

void draw(const Options& options) {
  const Drawing drawing{
      gloo::algorithms::findAlgorithm(options.collective, options.algorithm),
      options.ranks.front(),
      options.root,
      options.radix,
      options.drawSegments,
      options.tuning.network.ranksPerHost};
  if (options.text) {
    std::fputs(textOf(drawing).c_str(), stdout);
  }
  if (!options.drawFile.empty()) {
    gloo_simulate::writeText(options.drawFile, svgOf(drawing));
  }
}

int run(const Options& options) {
  if (!options.docsFolder.empty()) {
    gloo_simulate::writeDocuments(options.docsFolder);
  } else if (!options.checkFiles.empty()) {
    return checkOrder(options, showNote, showProgress) ? 0 : 1;
  } else if (options.text || !options.drawFile.empty()) {
    draw(options);
  } else {
    runSweep(options);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return command_line::run("gloo_simulate", [&] {
    return run(gloo_simulate::parseOptions(argc, argv));
  });
}
