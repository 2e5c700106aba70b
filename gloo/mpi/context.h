// Contexts for the ranks of an MPI job. Compiled by who includes this, with
// their MPI: the library has none in it.
#pragma once

#include <mpi.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "gloo/common/error.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/exchange_store.h"
#include "gloo/transport/device.h"

GLOO_NAMESPACE_BEGIN
namespace mpi {

namespace detail {

// Of a call of MPI's.
inline void check(int result, const char* call) {
  if (result != MPI_SUCCESS) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(result, text, &length);
    GLOO_THROW_IO_EXCEPTION(call, ": ", text);
  }
}

// False: not yet, or not any more.
inline bool isRunning() {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

// The ranks of one group, whom a context can be made of.
inline const MPI_Comm& usable(const MPI_Comm& comm) {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized != 0) {
    throw InvalidOperationException("mpi::Context: MPI is finalized");
  }
  if (!isRunning()) {
    throw InvalidOperationException(
        "mpi::Context: MPI is not initialized; call MPI_Init() before, or use "
        "mpi::Context::createManaged()");
  }
  if (comm == MPI_COMM_NULL) {
    throw InvalidOperationException(
        "mpi::Context: the communicator is MPI_COMM_NULL: this process is none "
        "of its ranks");
  }
  int inter = 0;
  check(MPI_Comm_test_inter(comm, &inter), "MPI_Comm_test_inter");
  if (inter != 0) {
    throw InvalidOperationException(
        "mpi::Context: the communicator is one between two groups; merge them "
        "by MPI_Intercomm_merge()");
  }
  return comm;
}

inline int rankIn(const MPI_Comm& comm) {
  int rank = -1;
  check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  return rank;
}

inline int sizeOf(const MPI_Comm& comm) {
  int size = 0;
  check(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  return size;
}

}  // namespace detail

// MPI is initialized by the first one, and finalized by the last, unless it was
// initialized by somebody else. For the main thread.
class GLOO_API MPIScope {
 public:
  MPIScope() {
    int initialized = 0;
    MPI_Initialized(&initialized);
    if (initialized == 0) {
      int provided = 0;  // what there is has to do
      detail::check(
          MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided),
          "MPI_Init_thread");
      owner_ = true;
    } else if (!detail::isRunning()) {
      throw InvalidOperationException(
          "MPIScope: MPI is finalized, and cannot be initialized again");
    }
  }
  ~MPIScope() {
    if (owner_ && detail::isRunning()) {
      MPI_Finalize();
    }
  }
  MPIScope(const MPIScope&) = delete;
  MPIScope& operator=(const MPIScope&) = delete;

 private:
  bool owner_ = false;
};

// Rank and size are those in the communicator. To make one, to connect and to
// destroy it are collective calls in MPI, for those threads that MPI was
// initialized for: the main one, any one at a time (MPI_THREAD_SERIALIZED) or
// all. Everything else is as with every context, and does without MPI.
class GLOO_API Context : public rendezvous::Context {
 public:
  // Of MPI_COMM_WORLD. MPI is initialized if it is not, and then finalized when
  // the last such context is gone; it cannot be initialized after that.
  static std::shared_ptr<Context> createManaged() {
    static std::mutex mutex;
    static std::weak_ptr<MPIScope> current;
    std::lock_guard<std::mutex> lock(mutex);
    auto scope = current.lock();
    if (scope == nullptr) {
      scope = std::make_shared<MPIScope>();
      current = scope;
    }
    auto context = std::make_shared<Context>(MPI_COMM_WORLD);
    context->mpiScope_ = std::move(scope);
    return context;
  }

  // Keeps a duplicate of the communicator; MPI may be finalized before the
  // context is destroyed. Throws InvalidOperationException; IoException where
  // the communicator's error handler returns, which MPI's own does not.
  explicit Context(const MPI_Comm& comm)
      : rendezvous::Context(detail::rankIn(detail::usable(comm)),
                            detail::sizeOf(detail::usable(comm))) {
    detail::check(MPI_Comm_dup(comm, &comm_), "MPI_Comm_dup");
    // What goes wrong is told, and does not end the process.
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }

  ~Context() override {
    try {
      closeConnections();  // MPI_Finalize() may wait for those who wait for us
    } catch (const std::exception&) {  // then they hear of it as they can
    }
    if (detail::isRunning()) {
      MPI_Comm_free(&comm_);
    }
  }

  // As rendezvous::Context::connectFullMesh(), which see; addresses travel by
  // MPI, which waits for late ranks without limit: the timeout begins then.
  void connectFullMesh(std::shared_ptr<transport::Device>& dev) {
    rendezvous::Context::connectFullMesh(
        std::make_shared<rendezvous::ExchangeStore>(
            [this](const std::vector<char>& mine) { return exchange(mine); }),
        dev);
  }

 protected:
  std::shared_ptr<MPIScope> mpiScope_;  // null: the caller's
  MPI_Comm comm_ = MPI_COMM_NULL;

 private:
  std::vector<std::vector<char>> exchange(const std::vector<char>& mine) const {
    const auto ranks = static_cast<size_t>(size);
    const int length = static_cast<int>(mine.size());
    std::vector<int> lengths(ranks);
    detail::check(
        MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, comm_),
        "MPI_Allgather");
    std::vector<int> begins(ranks + 1);
    for (size_t i = 0; i < ranks; i++) {
      begins[i + 1] = begins[i] + lengths[i];
    }
    std::vector<char> bytes(static_cast<size_t>(begins[ranks]));
    detail::check(
        MPI_Allgatherv(mine.data(), length, MPI_BYTE, bytes.data(),
                       lengths.data(), begins.data(), MPI_BYTE, comm_),
        "MPI_Allgatherv");
    std::vector<std::vector<char>> all;
    for (size_t i = 0; i < ranks; i++) {
      all.emplace_back(bytes.begin() + begins[i],
                       bytes.begin() + begins[i + 1]);
    }
    return all;
  }
};

}  // namespace mpi
GLOO_NAMESPACE_END
