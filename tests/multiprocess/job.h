// A job of a few processes on the chosen transport (chosenTransport), some of
// which come to harm. A rank that fails says when (CLOCK_MONOTONIC) and how;
// the parent compares that with when it did the harm.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "gloo/config.h"
#include "gloo/context.h"
#include "gloo/rendezvous/store.h"
#include "tests/support/process_group.h"
#include "tests/support/spawn.h"

GLOO_NAMESPACE_BEGIN
namespace test {

// What a rank saw fail.
struct Failure {
  std::chrono::nanoseconds began{0};  // to connect
  std::chrono::nanoseconds at{0};
  std::string type;  // "PeerLost", "Timeout", "Io", "other", "none"
  std::string text;
  bool names(const std::string& part) const {
    return text.find(part) != std::string::npos;
  }
};

class Job {
 public:
  struct Options {
    int size = 3;
    // Of a job on several hosts (tests/support/hosts.h): of how many ranks, and
    // which of them this host's processes are. Null: of `size`, and all.
    int total = 0;
    std::function<int(int process)> rankOf;
    std::chrono::milliseconds timeout = std::chrono::seconds(30);
    // Wraps the store of a rank; null: as it is.
    std::function<std::shared_ptr<rendezvous::Store>(
        int rank, std::shared_ptr<rendezvous::Store>)>
        wrap;
    bool lazy = false;
    // Makes the device of a rank; null: the chosen transport's.
    std::function<std::shared_ptr<transport::Device>(int rank)> device;
    // What a rank does as soon as it is connected; null: nothing.
    std::function<void(int rank)> onConnected;
  };
  // Each rank connects, says "connected", hears "go" and runs this; then it
  // says how it failed, destroys its context, and exits.
  using Body = std::function<void(Child&, const std::shared_ptr<Context>&)>;

  Job(const Options& options, const Body& body);

  ProcessGroup& group() { return *group_; }

  // All ranks are connected and are told to go.
  void go();

  // How a rank (the process of that number) failed; waits for it.
  Failure failure(int rank, std::chrono::milliseconds limit);
  // The same, of a rank that may have failed while it was connecting; else it
  // is told to go.
  Failure failureWherever(int rank);

  // Ranks other than `victim` fail as they must when it dies at `killed`, and
  // end well; how long the slowest took.
  std::chrono::nanoseconds expectDeath(int victim,
                                       std::chrono::nanoseconds killed);

 private:
  static Failure parse(const std::string& said);
  void runRank(Child& child, const Options& options, const Body& body);

  ScratchDirectory directory_;
  std::unique_ptr<ProcessGroup> group_;
};

// A job of 2 to 4 ranks that run `body`; a random one is killed, or stopped, at
// a random point. Every other one knows in time. Sets the options' size and
// timeout.
void harmAtRandom(uint64_t seed, bool stop, Job::Options options,
                  const Job::Body& body);

// Blocking operations for bodies; each with buffers of its own.
void sendTo(Context& context, int peer, uint64_t slot, size_t bytes);
void recvFrom(Context& context, int peer, uint64_t slot, size_t bytes);
// One message to the next rank and one from the one before.
void exchangeRing(Context& context, uint64_t slot, size_t bytes);
// The last ones of a run: rank `first` is done long before the others.
void lastOperations(Context& context, int first, size_t bytes);

}  // namespace test
GLOO_NAMESPACE_END
