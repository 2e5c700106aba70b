// Contexts for the ranks of an MPI job. Compiled by who includes this, with
// their MPI: the library has none in it.
#pragma once

#include <mpi.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "gloo/common/error.h"
#include "gloo/context.h"
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

inline void requireRunning() {
  if (!isRunning()) {
    throw InvalidOperationException(
        "mpi::Context: MPI is not initialized; call MPI_Init() before, or use "
        "mpi::Context::createManaged()");
  }
}

inline int rankIn(const MPI_Comm& comm) {
  requireRunning();
  int rank = -1;
  check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  return rank;
}

inline int sizeOf(const MPI_Comm& comm) {
  requireRunning();
  int size = 0;
  check(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  return size;
}

}  // namespace detail

// MPI is initialized while one exists; and finalized by the last one, unless
// it was initialized by somebody else. One thread.
class MPIScope {
 public:
  MPIScope() {
    int initialized = 0;
    MPI_Initialized(&initialized);
    if (initialized == 0) {
      detail::check(MPI_Init(nullptr, nullptr), "MPI_Init");
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
// destroy it are collective calls in MPI, by one thread at a time, or by any
// under MPI_THREAD_MULTIPLE. Everything else is as with every context, and
// does without MPI.
class Context : public ::gloo::Context {
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
    context->scope_ = std::move(scope);
    return context;
  }

  // Keeps a duplicate of the communicator. MPI is to be finalized after the
  // context is connected. Throws IoException, InvalidOperationException.
  explicit Context(const MPI_Comm& comm)
      : ::gloo::Context(detail::rankIn(comm), detail::sizeOf(comm)) {
    detail::check(MPI_Comm_dup(comm, &comm_), "MPI_Comm_dup");
    // What goes wrong is told, and does not end the process.
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }

  ~Context() override {
    if (detail::isRunning()) {
      MPI_Comm_free(&comm_);
    }
  }

  // As rendezvous::Context::connectFullMesh(), which see; addresses travel by
  // MPI, which waits for late ranks without limit.
  void connectFullMesh(std::shared_ptr<transport::Device>& dev) {
    if (dev == nullptr) {
      throw InvalidOperationException("connectFullMesh: the device is null");
    }
    auto connected = dev->createContext(rank, size);
    connected->setTimeout(getTimeout());
    connected->createAndConnectAllPairs(
        std::make_shared<rendezvous::ExchangeStore>(
            [this](const std::vector<char>& mine) { return exchange(mine); }));
    attach(dev, std::move(connected));
  }

 protected:
  std::shared_ptr<MPIScope> scope_;  // null: the caller's
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
