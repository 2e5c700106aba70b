// Allreduce between processes that find each other through files in a
// directory that all of them see: /tmp on one host, or a network file system.
//
//   mkdir -p /tmp/example
//   allreduce_file 0 2 /tmp/example & allreduce_file 1 2 /tmp/example
#include <cstdio>
#include <exception>
#include <memory>

#include "allreduce.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/transport/auto/device.h"

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr,
                 "usage: %s RANK SIZE DIRECTORY; "
                 "start SIZE of them, with ranks 0 to SIZE - 1\n",
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
    auto store = std::make_shared<gloo::rendezvous::FileStore>(argv[3]);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    context->connectFullMesh(store, device);
    return sumOverRanks(context);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
