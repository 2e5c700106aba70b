#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "algorithms/verify/algebra.h"
#include "algorithms/verify/order.h"
#include "algorithms/verify/verify.h"
#include "gloo/common/string.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::verify {
namespace {

// All ranks of a job, run to the end or to a standstill.
class World {
 public:
  World(const Job& job, const std::vector<Program>& programs)
      : job_(job),
        algebra_(job.size, job.algorithm->collective == Collective::kBarrier) {
    ranks_.reserve(programs.size());
    for (int rank = 0; rank < job.size; rank++) {
      ranks_.emplace_back(programs[static_cast<size_t>(rank)]);
      setUp(rank);
    }
    queues_.resize(programs.size() * programs.size());
  }

  Report run() {
    for (int rank = 0; rank < job_.size && report_.error.empty(); rank++) {
      at(rank).order->begin(fresh_);
      takeFresh(rank);
    }
    while (!ready_.empty() && report_.error.empty()) {
      const auto [rank, action] = ready_.back();
      ready_.pop_back();
      start(rank, action);
    }
    if (report_.error.empty()) {
      checkEnd();
    }
    for (const Rank& rank : ranks_) {
      report_.reducedBytes = std::max(report_.reducedBytes, rank.reducedBytes);
      report_.busiestBytes =
          std::max({report_.busiestBytes, rank.program->sendBytes,
                    rank.program->recvBytes});
    }
    return report_;
  }

 private:
  struct Rank {
    explicit Rank(const Program& p) : program(&p), later(p.actions.size()) {}
    const Program* program;
    std::optional<Order> order;   // once there is no race
    std::vector<uint32_t> later;  // the next one in a message's queue
    size_t reducedBytes = 0;
    // onePort: messages in the longest chain before the last send and the last
    // receive.
    std::array<int, 2> portDepth{};
    std::array<std::vector<Value>, kMemories> memory;
  };

  // Messages of a pair that have only one side yet.
  struct Queue {
    bool isEmpty = true;
    bool sends = false;  // which side it is
    uint32_t first = 0;
    uint32_t last = 0;
  };

  void fail(int rank, size_t action, const std::string& what) {
    if (report_.error.empty()) {
      report_.error = MakeString("rank ", rank, " action ", action, ": ", what);
    }
  }

  Rank& at(int rank) { return ranks_[static_cast<size_t>(rank)]; }

  void setUp(int rank) {
    const Layouts layouts = job_.layouts(rank);
    const ExpandOptions options = job_.optionsOf(rank);
    auto& memory = at(rank).memory;
    std::vector<Value>& input = memory[static_cast<size_t>(Memory::kInput)];
    std::vector<Value>& output = memory[static_cast<size_t>(Memory::kOutput)];
    if (hasOutput(rank)) {
      // In place, the longer of the two holds the other.
      output.resize(options.inPlace ? std::max(layouts.input.elements,
                                               layouts.output.elements)
                                    : layouts.output.elements);
    }
    if (!options.inPlace && hasInput(rank)) {
      input.reserve(layouts.input.elements);
    }
    for (size_t i = 0; hasInput(rank) && i < layouts.input.elements; i++) {
      const Value value = algebra_.input(rank, i);
      if (options.inPlace) {
        output.at(options.inPlaceOffset + i) = value;
      } else {
        input.push_back(value);
      }
    }
    const Program& program = *at(rank).program;
    memory[static_cast<size_t>(Memory::kScratch)].resize(program.scratchBytes);
    memory[static_cast<size_t>(Memory::kStage)].resize(program.stageBytes);
    const size_t sizes[kMemories] = {memory[0].size(), memory[1].size(),
                                     memory[2].size(), memory[3].size()};
    if (const std::string race = findRace(program, sizes); !race.empty()) {
      fail(rank, 0, race);
      return;
    }
    if (const std::string disorder = findDisorder(program, job_.size);
        !disorder.empty()) {
      fail(rank, 0, disorder);
      return;
    }
    at(rank).order.emplace(program, job_.onePort);
  }

  // Only the root has one.
  bool hasInput(int rank) const {
    switch (job_.algorithm->collective) {
      case Collective::kBroadcast:
      case Collective::kScatter:
        return rank == job_.root;
      default:
        return true;
    }
  }

  // Only the root has one.
  bool hasOutput(int rank) const {
    switch (job_.algorithm->collective) {
      case Collective::kReduce:
      case Collective::kGather:
      case Collective::kGatherv:
        return rank == job_.root;
      default:
        return true;
    }
  }

  void start(int rank, size_t i) {
    Rank& r = at(rank);
    const Action& a = r.program->actions[i];
    r.order->started(static_cast<uint32_t>(i), fresh_);
    takeFresh(rank);
    if (Order::isMessage(a)) {
      post(rank, i, a);
      return;
    }
    perform(rank, i, a);
    const auto action = static_cast<uint32_t>(i);
    finish(rank, action, r.order->depthBefore(action));
  }

  // Reduces or copies.
  void perform(int rank, size_t i, const Action& a) {
    Rank& r = at(rank);
    r.reducedBytes += a.kind == ActionKind::kReduce ? a.bytes : 0;
    for (size_t b = 0; b < a.bytes; b++) {
      Value value = read(r, a.source, b);
      if (a.kind == ActionKind::kReduce) {
        const Value staged = read(r, a.staged, b);
        std::string error;
        value = a.ownFirst ? algebra_.reduce(value, staged, &error)
                           : algebra_.reduce(staged, value, &error);
        if (!error.empty()) {
          fail(rank, i, error);
        }
      }
      write(r, a.target, b, value);
    }
  }

  void finish(int rank, uint32_t action, int depth) {
    at(rank).order->done(action, depth, fresh_);
    takeFresh(rank);
  }

  // What the rank may start now.
  void takeFresh(int rank) {
    for (const uint32_t action : fresh_) {
      ready_.emplace_back(rank, action);
    }
    fresh_.clear();
  }

  static Value read(const Rank& r, Place place, size_t b) {
    return r.memory[static_cast<size_t>(place.memory)].at(place.offset + b);
  }
  static void write(Rank& r, Place place, size_t b, Value value) {
    r.memory[static_cast<size_t>(place.memory)].at(place.offset + b) = value;
  }

  void post(int rank, size_t i, const Action& a) {
    if (a.peer < 0 || a.peer >= job_.size || a.peer == rank) {
      fail(rank, i, MakeString("peer ", a.peer));
      return;
    }
    const bool sends = a.kind == ActionKind::kSend;
    const int from = sends ? rank : a.peer;
    const int to = sends ? a.peer : rank;
    Queue& queue = queues_[static_cast<size_t>(from) * ranks_.size() +
                           static_cast<size_t>(to)];
    const auto index = static_cast<uint32_t>(i);
    if (queue.isEmpty) {
      queue = {false, sends, index, index};
      return;
    }
    if (queue.sends == sends) {
      at(rank).later[queue.last] = index;
      queue.last = index;
      return;
    }
    const uint32_t other = queue.first;
    queue.isEmpty = other == queue.last;
    queue.first = at(a.peer).later[other];
    match(from, sends ? index : other, to, sends ? other : index);
  }

  void match(int from, uint32_t send, int to, uint32_t recv) {
    Rank& a = at(from);
    Rank& b = at(to);
    const Action& s = a.program->actions[send];
    const Action& t = b.program->actions[recv];
    if (s.bytes != t.bytes) {
      fail(from, send,
           MakeString("sends ", s.bytes, " bytes, but action ", recv,
                      " of rank ", to, " expects ", t.bytes));
      return;
    }
    for (size_t i = 0; i < s.bytes; i++) {
      const Value value = read(a, s.source, i);
      if (value == kUndefined) {
        fail(from, send, "sends an undefined value");
      }
      write(b, t.target, i, value);
    }
    int depth =
        std::max(a.order->depthBefore(send), b.order->depthBefore(recv)) + 1;
    if (job_.onePort) {
      depth = std::max({depth, a.portDepth[0] + 1, b.portDepth[1] + 1});
      a.portDepth[0] = b.portDepth[1] = depth;
    }
    report_.rounds = std::max(report_.rounds, depth);
    finish(from, send, depth);
    finish(to, recv, depth);
  }

  void checkEnd() {
    for (int rank = 0; rank < job_.size; rank++) {
      const Rank& r = at(rank);
      if (!r.order->atEnd()) {
        fail(rank, r.order->head(), "deadlock: never done");
        return;
      }
      checkOutput(rank);
    }
  }

  void checkOutput(int rank) {
    const Layouts layouts = job_.layouts(rank);
    if (!hasOutput(rank)) {
      return;
    }
    const auto& output = at(rank).memory[static_cast<size_t>(Memory::kOutput)];
    const ExpandOptions options = job_.optionsOf(rank);
    const size_t outputOffset = options.inPlace ? options.outputOffset : 0;
    for (int block = 0; block < layouts.output.blocks; block++) {
      const size_t begin = layouts.output.offset(block);
      const size_t end = layouts.output.offset(block + 1);
      for (size_t i = begin; i < end; i++) {
        const Value value = output.at(outputOffset + i);
        if (!asPromised(rank, block, i, i - begin, value)) {
          fail(rank, at(rank).order->head(),
               MakeString("output element ", i,
                          " is wrong: ", algebra_.describe(value)));
          return;
        }
      }
    }
  }

  // Element i of the output is element `within` of its block.
  bool asPromised(int rank, int block, size_t i, size_t within, Value value) {
    const auto sendOffset = [&](int from, int to) {
      return job_.layouts(from).input.offset(to);
    };
    switch (job_.algorithm->collective) {
      case Collective::kAllreduce:
      case Collective::kReduce:
      case Collective::kBarrier:
        return reduced(i, value);
      case Collective::kReduceScatter:
      case Collective::kReduceScatterv: {
        return reduced(sendOffset(rank, rank) + i, value);
      }
      case Collective::kBroadcast:
        return algebra_.isInput(value, job_.root, i);
      case Collective::kScatter:
        return algebra_.isInput(value, job_.root,
                                sendOffset(job_.root, rank) + i);
      case Collective::kGather:
      case Collective::kGatherv:
      case Collective::kAllgather:
      case Collective::kAllgatherv:
        return algebra_.isInput(value, block, within);
      case Collective::kAlltoall:
      case Collective::kAlltoallv:
        return algebra_.isInput(value, block, sendOffset(block, rank) + within);
    }
    return false;
  }

  // All ranks that hold this element of the result hold the same tree. In order
  // it is the one that lanes make.
  bool reduced(size_t index, Value value) {
    if (index >= trees_.size()) {
      trees_.resize(index + 1, kUndefined);
    }
    Value& first = trees_[index];
    if (first == kUndefined) {
      first = value;
      return job_.algorithm->name == kInOrder
                 ? algebra_.isChainOfAll(value, index)
                 : algebra_.isReductionOfAll(value, index);
    }
    return value != kUndefined && algebra_.same(first, value);
  }

  const Job& job_;
  Algebra algebra_;
  std::vector<Rank> ranks_;
  std::vector<Queue> queues_;  // from * size + to
  std::vector<std::pair<int, uint32_t>> ready_;
  std::vector<uint32_t> fresh_;
  std::vector<Value> trees_;  // by element of the result
  Report report_;
};

}  // namespace

std::vector<Program> programsOf(const Job& job) {
  std::vector<Program> programs;
  for (int rank = 0; rank < job.size; rank++) {
    programs.push_back(expand(job.algorithm->schedule(job.setting(rank)),
                              job.layouts(rank), job.optionsOf(rank)));
  }
  return programs;
}

Report verify(const Job& job) { return verifyPrograms(job, programsOf(job)); }

Report verifyPrograms(const Job& job, const std::vector<Program>& programs) {
  return World(job, programs).run();
}

}  // namespace algorithms::verify
GLOO_NAMESPACE_END
