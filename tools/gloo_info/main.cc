// Tells what this build of the library can do on this host. Exit status: 0, 1
// when an RDMA port that was asked for cannot be used, 2 for a bad command
// line.
#include <iostream>

#include "gloo/config.h"
#include "tools/gloo_info/reports.h"
#include "tools/support/parse.h"

namespace {

using gloo_info::AlgorithmsOptions;
using gloo_info::RdmaOptions;

// True: all that was asked for can be had.
bool printAll(const RdmaOptions& rdma, bool rdmaIsWanted) {
  gloo_info::printBuild(std::cout);
  gloo_info::printHost(std::cout);
  gloo_info::printTcp(std::cout);
#if GLOO_USE_IBVERBS
  const bool usable = gloo_info::printRdma(std::cout, rdma);
#else
  (void)rdma;
  const bool usable = false;
  std::cout << "RDMA devices: this build is without them (-DUSE_IBVERBS=ON)\n";
#endif
  gloo_info::printAutomatic(std::cout);
  return usable || !rdmaIsWanted;
}

// Exit status.
int tell(int argc, const char* const* argv) {
  CLI::App app(
      "What this build of gloo contains, which devices this host has, and "
      "which "
      "of them would be used, and why.");
  RdmaOptions rdma;
  auto* wanted = app.add_option_group(
      "RDMA port",
      "Tell what happens with these attributes; exit status 1 if "
      "the port cannot be used");
  wanted->add_option("--ib-device", rdma.device,
                     "Name, such as mlx5_0 (default: the first active)");
  wanted->add_option("--ib-port", rdma.port, "Number of the port (default: 1)");
  wanted->add_option("--ib-index", rdma.gidIndex,
                     "Index of the GID (default: -1, choose)");
  AlgorithmsOptions algorithms;
  bool wantsAlgorithms = false;
  auto* table = app.add_option_group(
      "Algorithms", "Which algorithm runs a collective of which size");
  auto* flag = table->add_flag("--algorithms", wantsAlgorithms,
                               "Print the decision table instead of the rest");
  for (CLI::Option* option : wanted->get_options()) {
    flag->excludes(option);
  }
  table
      ->add_option("--ranks", algorithms.ranks,
                   "Number of ranks (default: 8); from some hundreds on, "
                   "minutes are spent")
      ->check(CLI::Range(2, 1 << 14))
      ->needs(flag);
  table
      ->add_option("--ranks-per-host", algorithms.ranksPerHost,
                   "Ranks of one host (default: all)")
      ->check(CLI::Range(1, 1 << 14))
      ->needs(flag);
  table
      ->add_option("--transport", algorithms.transport,
                   "tcp, shm, ibverbs or auto (default: tcp)")
      ->check(CLI::IsMember({"tcp", "shm", "ibverbs", "auto"}))
      ->needs(flag);
  table
      ->add_option("--tuning", algorithms.tuningFile,
                   "Tuning file (default: that of GLOO_TUNING_FILE)")
      ->check(command_line::isName())
      ->needs(flag);
  table->add_flag("--json", algorithms.json, "As JSON")->needs(flag);
  command_line::parse(app, argc, argv);
  if (wantsAlgorithms) {
    gloo_info::printAlgorithms(std::cout, algorithms);
    return 0;
  }
  return printAll(rdma, wanted->count_all() > 0) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return command_line::run("gloo_info", [&] { return tell(argc, argv); });
}
