// Runs a function on several ranks that are connected to each other: as threads
// of this process, or as forked processes. Whatever goes wrong on any rank
// fails the test; a rank that hangs is reported and ends the test program.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "gloo/config.h"
#include "gloo/rendezvous/store.h"
#include "gloo/transport/context.h"
#include "gloo/transport/device.h"

GLOO_NAMESPACE_BEGIN
class Context;

namespace test {

enum class Mode { kThreads, kProcesses };
std::string name(Mode mode);  // "threads"

using DeviceMaker = std::function<std::shared_ptr<transport::Device>()>;

// What a rank starts from.
struct Seat {
  int rank = 0;
  int size = 0;
  std::shared_ptr<rendezvous::Store> store;
};

// fn on every rank, without device or context. Blocks until all have returned.
void spawnSeats(Mode mode, int size, const std::function<void(Seat&)>& fn);

// fn on every rank of a connected transport context; the device is made by the
// rank itself.
using TransportFunction =
    std::function<void(const std::shared_ptr<transport::Context>&)>;
void spawn(Mode mode, const DeviceMaker& maker, int size,
           const TransportFunction& fn);

// The same with a gloo::Context, for collectives.
using ContextFunction = std::function<void(const std::shared_ptr<Context>&)>;
void spawnContexts(Mode mode, const DeviceMaker& maker, int size,
                   const ContextFunction& fn);

// An empty directory that goes away with the object; not in a forked child.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ~ScratchDirectory();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int owner_;  // process
};

// The time limit that contexts made here get.
std::chrono::milliseconds contextTimeout();

}  // namespace test
GLOO_NAMESPACE_END
