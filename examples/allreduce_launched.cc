// Allreduce between processes that a launcher starts: mpirun, srun, torchrun,
// or a script that sets GLOO_RANK, GLOO_SIZE and GLOO_STORE.
//
//   mpirun -np 4 allreduce_launched
//   torchrun --no-python --nproc-per-node 4 allreduce_launched
#include <cstdio>
#include <exception>

#include "allreduce.h"
#include "gloo/launch.h"
#include "gloo/transport/auto/device.h"

int main(int argc, char** argv) {
  if (argc != 1) {
    std::fprintf(stderr,
                 "usage: mpirun -np SIZE %s\n"
                 "Also under srun and torchrun, or with GLOO_RANK, GLOO_SIZE "
                 "and GLOO_STORE set.\n",
                 argv[0]);
    return 2;
  }
  try {
    const auto launched = gloo::launch::fromEnv();
    if (launched.rank == 0) {
      std::printf("started by %s\n", launched.source.c_str());
    }
    auto device = gloo::transport::CreateDevice();  // the best for each peer
    return sumOverRanks(gloo::launch::connect(device));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
