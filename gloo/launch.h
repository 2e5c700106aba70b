// Finds out who this process is in a job that a launcher started.
#pragma once

#include <memory>
#include <string>

#include "gloo/config.h"
#include "gloo/rendezvous/context.h"
#include "gloo/transport/device.h"

GLOO_NAMESPACE_BEGIN
namespace launch {

// What the launcher has said. Value.
struct Environment {
  int rank = 0;
  int size = 1;
  int localRank = -1;  // among the processes of this host; -1: unknown
  int localSize = -1;  // on this host; -1: unknown
  std::string store;   // URL for rendezvous::openStore; empty: size is 1
  std::string source;  // "torchrun (RANK, WORLD_SIZE), store: GLOO_STORE"
};

// Looks at, in this order:
//   GLOO_RANK, GLOO_SIZE                        set by hand
//   RANK, WORLD_SIZE, LOCAL_RANK                torchrun
//   OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK    Open MPI
//   PMI_RANK, PMI_SIZE, MPI_LOCALRANKID         MPICH and other PMI launchers
//   SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID   Slurm
// (local ranks and sizes, as far as they are there and make sense, else
// unknown: GLOO_LOCAL_RANK and GLOO_LOCAL_SIZE, LOCAL_WORLD_SIZE,
// OMPI_COMM_WORLD_LOCAL_SIZE, MPI_LOCALNRANKS). All that are there must agree,
// with one exception: inside a Slurm job step another launcher may have started
// this process, and is then believed.
//
// The store is GLOO_STORE; else the TCP store that rank 0 serves at
// MASTER_ADDR and the port after MASTER_PORT (torchrun's own store occupies
// MASTER_PORT); else, when Open MPI, MPICH or Slurm has started all ranks on
// this host, a file store in a directory of the job's own below TMPDIR (or
// /tmp), which is made here. It is small, stays there after the job, and does
// not harm a later one.
//
// InvalidOperationException names the variables and values that are missing,
// malformed or contradict each other; IoException if that directory cannot be
// made.
GLOO_API Environment fromEnv();

// fromEnv(), openStore(), Context and connectFullMesh() in one, with what they
// throw. The ranks have 30 s to find each other, the default of a context:
// where some start later, call these one by one, and setTimeout() before the
// last.
GLOO_API std::shared_ptr<rendezvous::Context> connect(
    std::shared_ptr<transport::Device>& device);

}  // namespace launch
GLOO_NAMESPACE_END
