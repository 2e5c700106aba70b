// A program that MPI has started, and MPI introduces: with the contexts of
// gloo/mpi/context.h, one of all ranks and one of every other's. With an
// argument, MPI is the program's own, by an MPIScope, and not the contexts'.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <vector>

#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/math.h"
#include "gloo/mpi/context.h"
#include "gloo/transport/tcp/device.h"
#include "support/check.h"

namespace {

void sumUp(const std::shared_ptr<gloo::mpi::Context>& context) {
  gloo::transport::tcp::attr attr;
  attr.hostname = "localhost";
  std::shared_ptr<gloo::transport::Device> device =
      gloo::transport::tcp::CreateDevice(attr);
  context->connectFullMesh(device);
  std::vector<int64_t> values(5000, context->rank + 1);
  gloo::AllreduceOptions options(context);
  options.setOutput(values.data(), values.size());
  options.setReduceFunction(
      static_cast<void (*)(void*, const void*, const void*, size_t)>(
          &gloo::sum<int64_t>));
  gloo::allreduce(options);
  CHECK(values ==
        std::vector<int64_t>(5000, context->size * (context->size + 1) / 2));
  gloo::BarrierOptions barrier(context);
  gloo::barrier(barrier);
}

struct Contexts {
  std::shared_ptr<gloo::mpi::Context> world;
  std::shared_ptr<gloo::mpi::Context> half;
};

void refusesWhatHasNoRanks() {
  CHECK(throwsWith<gloo::InvalidOperationException>(
      "MPI_COMM_NULL", [] { gloo::mpi::Context none(MPI_COMM_NULL); }));
}

void run(Contexts& contexts) {
  CHECK(throwsWith<gloo::InvalidOperationException>(
      "createManaged", [] { gloo::mpi::Context early(MPI_COMM_WORLD); }));
  auto& [world, half] = contexts;
  world = gloo::mpi::Context::createManaged();
  CHECK(world->size > 1);
  sumUp(world);
  refusesWhatHasNoRanks();

  MPI_Comm part = MPI_COMM_NULL;
  CHECK(MPI_Comm_split(MPI_COMM_WORLD, world->rank % 2, 0, &part) ==
        MPI_SUCCESS);
  half = std::make_shared<gloo::mpi::Context>(part);
  MPI_Comm_free(&part);  // the context has its own
  CHECK(half->size < world->size);
  sumUp(half);
  sumUp(half);  // connected anew

  std::shared_ptr<gloo::transport::Device> none;
  CHECK(throwsWith<gloo::InvalidOperationException>(
      "device", [&] { half->connectFullMesh(none); }));

  // One of them keeps MPI; without it there is none any more.
  auto second = gloo::mpi::Context::createManaged();
  world.reset();
  sumUp(second);
  second.reset();
  CHECK(throwsWith<gloo::InvalidOperationException>(
      "finalized", [] { gloo::mpi::Context::createManaged(); }));
  CHECK(throwsWith<gloo::InvalidOperationException>(
      "finalized", [] { gloo::mpi::Context late(MPI_COMM_WORLD); }));
  CHECK(throwsWith<gloo::InvalidOperationException>(
      "finalized", [] { gloo::mpi::MPIScope late; }));
  half.reset();  // a late one frees nothing
}

bool isFinalized() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  return finalized != 0;
}

// MPI lasts as long as the outermost scope.
void runInScope() {
  {
    const gloo::mpi::MPIScope scope;
    { const gloo::mpi::MPIScope inner; }
    for (int i = 0; i < 2; i++) {
      sumUp(gloo::mpi::Context::createManaged());
      sumUp(std::make_shared<gloo::mpi::Context>(MPI_COMM_WORLD));
      CHECK(!isFinalized());
    }
  }
  CHECK(isFinalized());
}

}  // namespace

int main(int argc, char**) {
  Contexts contexts;
  try {
    if (argc > 1) {
      runInScope();
    } else {
      run(contexts);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::_Exit(1);  // mpirun ends the others, who may wait for this rank
  }
}
