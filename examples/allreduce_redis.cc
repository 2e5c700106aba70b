// Allreduce between processes that find each other through a Redis server.
// Jobs that share a server need a PREFIX each; a run may use an earlier one's.
//
//   redis-server &
//   allreduce_redis 0 2 redis://localhost:6379 run1 &
//   allreduce_redis 1 2 redis://localhost:6379 run1
#include <cstdio>
#include <exception>
#include <memory>

#include "allreduce.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/prefix_store.h"
#include "gloo/rendezvous/store.h"
#include "gloo/transport/auto/device.h"

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr,
                 "usage: %s RANK SIZE redis://[[USER:]PASSWORD@]HOST[:PORT] "
                 "PREFIX; start SIZE of them, with ranks 0 to SIZE - 1\n",
                 argv[0]);
    return 2;
  }
  const int rank = parseNumber(argv[1]);
  const int size = parseNumber(argv[2]);
  if (rank < 0 || size < 1 || rank >= size) {
    std::fprintf(stderr, "%s: rank '%s' of '%s' is not one of 0 to SIZE - 1\n",
                 argv[0], argv[1], argv[2]);
    return 2;
  }
  try {
    auto device = gloo::transport::CreateDevice();  // the best for each peer
    auto redis = gloo::rendezvous::openStore(argv[3], rank);
    auto store =
        std::make_shared<gloo::rendezvous::PrefixStore>(argv[4], redis);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    context->connectFullMesh(store, device);
    return sumOverRanks(context);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
