// An MPI library, Open MPI or MPICH: whichever this was compiled with. The
// launcher's options decide which transport it uses.
#include <mpi.h>

#include <cstdio>
#include <exception>

#include "measure.h"
#include "pingpong.h"

namespace {

using measure::Operation;
using measure::Work;

// Of a pingpong: the first sends its input, the other what it has received.
// `posted`: the receive is, before anything is on its way, as this library's
// is.
struct Side {
  Work work;
  int peer;
  bool posted;
  mutable MPI_Request request = MPI_REQUEST_NULL;

  void expect() const {
    if (posted) {
      MPI_Irecv(work.output, int(work.outputElements), MPI_FLOAT, peer, 0,
                MPI_COMM_WORLD, &request);
    }
  }
  void send() const {
    MPI_Send(peer == 1 ? work.input : work.output, int(work.inputElements),
             MPI_FLOAT, peer, 0, MPI_COMM_WORLD);
  }
  void receive() const {
    if (posted) {
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      return;
    }
    MPI_Recv(work.output, int(work.outputElements), MPI_FLOAT, peer, 0,
             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  void finish() const {}
};

class Mpi : public measure::Program {
 public:
  explicit Mpi(std::string links) : links_(std::move(links)) {}

  std::vector<std::string> modes(const std::string& collective) override {
    if (collective == "pingpong") {
      return {"default", kPosted};
    }
    return {"default"};
  }

  Operation prepare(const Work& work, const std::string& mode) override {
    const std::string& name = work.collective;
    float* const in = work.input;
    float* const out = work.output;
    const int block = int(work.blockElements);
    if (name == "allreduce") {
      return [=] {
        MPI_Allreduce(MPI_IN_PLACE, out, block, MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
      };
    }
    if (name == "reduce") {
      return [=] {
        MPI_Reduce(in, out, block, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
      };
    }
    if (name == "broadcast") {
      return [=] { MPI_Bcast(out, block, MPI_FLOAT, 0, MPI_COMM_WORLD); };
    }
    if (name == "allgather") {
      return [=] {
        MPI_Allgather(in, block, MPI_FLOAT, out, block, MPI_FLOAT,
                      MPI_COMM_WORLD);
      };
    }
    if (name == "reduce_scatter") {
      return [=] {
        MPI_Reduce_scatter_block(in, out, block, MPI_FLOAT, MPI_SUM,
                                 MPI_COMM_WORLD);
      };
    }
    if (name == "alltoall") {
      return [=] {
        MPI_Alltoall(in, block, MPI_FLOAT, out, block, MPI_FLOAT,
                     MPI_COMM_WORLD);
      };
    }
    if (name == "pingpong") {
      int rank = 0;
      MPI_Comm_rank(MPI_COMM_WORLD, &rank);
      return measure::pingPong(work, rank == 0,
                               Side{work, 1 - rank, mode == kPosted});
    }
    return [] { MPI_Barrier(MPI_COMM_WORLD); };
  }

  std::string links() override { return links_; }

 private:
  static constexpr char kPosted[] = "posted";

  std::string links_;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);  // errors of MPI calls end the job by default
  auto arguments = measure::parse(argc, argv, {});
  MPI_Comm_rank(MPI_COMM_WORLD, &arguments.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &arguments.size);
  Mpi program(arguments.transport);
  const int status = measure::run(program, arguments);
  if (status != 0) {
    MPI_Abort(MPI_COMM_WORLD, status);
  }
  MPI_Finalize();
  return 0;
}
