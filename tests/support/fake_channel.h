// An in-process Channel among threads: messages are matched as the contract
// says and completed in an order drawn from a seed.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "gloo/internal/channel.h"

GLOO_NAMESPACE_BEGIN
namespace testing_support {

struct FakeOptions {
  // A send is done only when its receive has the bytes; otherwise at once,
  // from a copy.
  bool synchronous = true;
  unsigned seed = 1;
  // Matched messages that may be withheld while others overtake them.
  bool shuffle = true;
  // The world fails when this many operations have been posted; 0: never.
  size_t failAfter = 0;
};

class FakeChannel;

// Connects `size` channels. Thread-safe.
class FakeWorld {
 public:
  explicit FakeWorld(int size, FakeOptions options = {});
  ~FakeWorld();

  internal::Channel& channel(int rank);
  int size() const { return static_cast<int>(channels_.size()); }

  // Operations that nobody has waited for or cancelled.
  size_t pending();
  size_t posted();

 private:
  friend class FakeChannel;
  using Operation = internal::Operation;

  // Sends and receives on one (from, to, slot), in the order of their start.
  struct Queue {
    int from = 0;
    int to = 0;
    uint64_t slot = 0;
    std::vector<Operation*> sends;
    std::vector<Operation*> recvs;
  };
  struct Match {
    Operation* send;
    Operation* recv;
  };

  Queue& queue(int from, int to, uint64_t slot);
  void post(Operation& op, int from, int to);
  void matchUp(Queue& queue);
  void deliverSome(bool all);
  void deliver(const Match& match);
  void failAll(internal::CausePtr cause);
  void finish(Operation& op, Operation::State state);
  void end(Operation& op);

  const FakeOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::mt19937 random_;
  std::vector<Queue> queues_;
  std::vector<Match> matches_;
  // Copies of what was sent eagerly, owned until delivered.
  std::vector<std::unique_ptr<Operation>> copies_;
  std::vector<std::vector<char>> bytes_;
  std::vector<std::unique_ptr<FakeChannel>> channels_;
  internal::CausePtr cause_;
  size_t posted_ = 0;
  size_t pending_ = 0;
};

}  // namespace testing_support
GLOO_NAMESPACE_END
