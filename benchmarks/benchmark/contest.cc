#include "benchmarks/benchmark/contest.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "benchmarks/benchmark/seats.h"
#include "benchmarks/benchmark/turns.h"
#include "benchmarks/support/median.h"
#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/internal/algorithms.h"
#include "gloo/math.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/prefix_store.h"

namespace benchmark {
namespace {

using Clock = std::chrono::steady_clock;
using ContextPtr = std::shared_ptr<gloo::Context>;

constexpr const char* kVariable = "GLOO_ALGORITHM";
constexpr size_t kRounds = 9;  // of turns
constexpr size_t kDuelRounds = 15;
constexpr size_t kTrials = 3;
constexpr size_t kMaxIterations = 50;  // of a turn
constexpr std::chrono::milliseconds kTimeEach{100};
// Who takes so many times as long as the quickest need not be known better.
constexpr double kHopeless = 3;
// The quickest of many looks quicker than it is; a choice that is slower than
// it by more than this is measured against it alone.
constexpr double kAlike = 1.05;

// Names of the collective's algorithms for the context's ranks and hosts.
std::vector<std::string> algorithmsOf(const std::string& collective,
                                      gloo::Context& context) {
  for (const auto& names : gloo::internal::algorithmNames(context)) {
    if (names.collective == collective) {
      return names.algorithms;
    }
  }
  throw std::logic_error("no collective " + collective);
}

// That forces algorithm `index` of every collective that has so many.
std::string wish(size_t index, gloo::Context& context) {
  std::string text;
  for (const auto& names : gloo::internal::algorithmNames(context)) {
    if (index < names.algorithms.size()) {
      text += names.collective + "=" + names.algorithms[index] + ",";
    }
  }
  return text;
}

}  // namespace

Contest::Contest(const Options& options,
                 std::shared_ptr<gloo::transport::Device> device,
                 std::shared_ptr<gloo::rendezvous::Store> store)
    : options_(options),
      vectors_(options),
      device_(std::move(device)),
      store_(std::move(store)) {
  control_ = connect(kVariable, "");
  if (options_.localRanks > 0 && options_.localRanks <= measure::kMaxRanks) {
    page_ = std::make_unique<measure::Page>(options_.sharedPath + "/contest",
                                            options_.rank, options_.size);
  }
}

// A barrier of messages has each rank leave when those it exchanged the last
// ones with do, which favours algorithms that begin with the same: a third of
// 4 ranks' allgather of 1 KiB.
void Contest::meet() {
  if (page_ != nullptr) {
    page_->barrier();
  } else {
    gloo::BarrierOptions barrier(control_);
    gloo::barrier(barrier);
  }
}

void Contest::connectAll() {
  automatic_ = connect(kVariable, "");
  size_t most = 0;
  for (const Entry* entry : entries()) {
    most = std::max(most, algorithmsOf(entry->collective, *control_).size());
  }
  for (size_t i = 0; i < most; i++) {
    forced_.push_back(connect(kVariable, wish(i, *control_)));
  }
}

Contest::~Contest() {
  for (const auto& context : all_) {
    context->closeConnections();
  }
}

ContextPtr Contest::connect(const std::string& variable,
                            const std::string& value) {
  setenv(variable.c_str(), value.c_str(), 1);
  auto context = std::make_shared<gloo::rendezvous::Context>(
      options_.rank, options_.size, options_.base);
  auto own = std::make_shared<gloo::rendezvous::PrefixStore>(
      "contest" + std::to_string(all_.size()), store_);
  context->connectFullMesh(own, device_);
  unsetenv(variable.c_str());
  all_.push_back(context);
  return context;
}

std::vector<const Entry*> Contest::entries() const {
  std::vector<const Entry*> found;
  for (const Entry& entry : allBenchmarks()) {
    if (!entry.collective.empty() &&
        (options_.name.empty() || options_.name == entry.name)) {
      found.push_back(&entry);
    }
  }
  return found;
}

std::vector<size_t> Contest::sizes() const {
  std::vector<size_t> sizes;
  for (size_t bytes = 4; bytes <= options_.largestBytes; bytes *= 4) {
    sizes.push_back(bytes);
  }
  return sizes;
}

size_t Contest::elementsFor(const Entry& entry, size_t bytes) const {
  const double times = entry.traffic(options_.size, options_).algorithm;
  const size_t elements = size_t(double(bytes / sizeof(float)) / times);
  return equalParts(entry, options_.size, options_, elements);
}

size_t Contest::bytesOf(const Entry& entry, size_t elements) const {
  const double times = entry.traffic(options_.size, options_).algorithm;
  return elements * sizeof(float) * size_t(times);
}

bool Contest::isDirect(const std::string& collective) const {
  for (const auto& names : gloo::internal::algorithmNames(*control_)) {
    if (names.collective == collective) {
      return names.isDirect;
    }
  }
  return false;
}

void Contest::addUp(std::vector<double>& values) const {
  combine(values, [](void* c, const void* a, const void* b, size_t n) {
    gloo::sum<double>(c, a, b, n);
  });
}

void Contest::takeMost(std::vector<double>& values) const {
  combine(values, [](void* c, const void* a, const void* b, size_t n) {
    gloo::max<double>(c, a, b, n);
  });
}

void Contest::combine(std::vector<double>& values,
                      const gloo::AllreduceOptions::Func& function) const {
  gloo::AllreduceOptions options(control_);
  options.setOutput(values.data(), values.size());
  options.setReduceFunction(function);
  gloo::allreduce(options);
}

// Seconds of each iteration on this rank.
std::vector<double> Contest::turn(const Entry& entry, size_t elements,
                                  const ContextPtr& context,
                                  size_t iterations) {
  const auto benchmark = entry.makeFloat({context, &vectors_, elements});
  std::vector<double> seconds;
  for (size_t i = 0; i <= iterations; i++) {
    benchmark->fill(i);
    meet();
    const auto start = Clock::now();
    benchmark->run();
    benchmark->touch();
    const std::chrono::duration<double> spent = Clock::now() - start;
    // The first warms up, and shows that the result is right.
    if (i > 0) {
      seconds.push_back(spent.count());
    } else if (options_.verify) {
      const std::string errors = benchmark->check(i);
      if (!errors.empty()) {
        throw std::runtime_error("wrong result of " + entry.name + ": " +
                                 errors);
      }
    }
  }
  return seconds;
}

double Contest::medianOfSlowest(const Entry& entry, size_t elements,
                                const ContextPtr& context, size_t iterations) {
  auto seconds = turn(entry, elements, context, iterations);
  takeMost(seconds);  // from here on equal on all ranks
  return support::median(std::move(seconds));
}

size_t Contest::iterationsFor(double seconds) const {
  const std::chrono::duration<double> budget =
      options_.iterationTime.value_or(kTimeEach);
  const double wanted = budget.count() / seconds / double(kRounds);
  return size_t(std::clamp(std::ceil(wanted), 1.0, double(kMaxIterations)));
}

Turns Contest::playRounds(const Entry& entry, size_t elements,
                          const std::vector<ContextPtr>& contexts,
                          size_t rounds, size_t iterations) {
  Turns turns(contexts.size());
  draws_++;
  for (size_t round = 0; round < rounds; round++) {
    // Nobody always comes after the same one.
    for (size_t i = 0; i < contexts.size(); i++) {
      // Ranks that talk to each other may share a processor or not: in a round
      // the same for all contestants, each of whom begins there. The system
      // moves ranks as it goes on, and who always came first or last would
      // have been measured with other neighbours.
      if (options_.localRanks > 0) {
        takeSeat(draws_, round, size_t(options_.rank), size_t(options_.size));
      }
      const size_t next = round % 2 == 0 ? i : contexts.size() - 1 - i;
      turns.add(next,
                medianOfSlowest(entry, elements, contexts[next], iterations));
    }
  }
  return turns;
}

std::vector<double> Contest::measure(const Entry& entry, size_t elements,
                                     const std::vector<ContextPtr>& contexts) {
  std::vector<double> seconds;
  for (const auto& context : contexts) {
    seconds.push_back(medianOfSlowest(entry, elements, context, kTrials));
  }
  const double quickest = *std::min_element(seconds.begin(), seconds.end());
  std::vector<ContextPtr> serious;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < contexts.size(); i++) {
    // The first is what the others are compared with.
    if (i == 0 || seconds[i] < kHopeless * quickest) {
      serious.push_back(contexts[i]);
      numbers.push_back(i);
    }
  }
  const Turns turns =
      playRounds(entry, elements, serious, kRounds, iterationsFor(quickest));
  for (size_t i = 0; i < serious.size(); i++) {
    seconds[numbers[i]] = turns.seconds(0) * turns.ratio(i, 0);
  }
  for (double& each : seconds) {
    each *= 1e6;
  }
  return seconds;
}

void Contest::rematch(const Entry& entry, size_t elements,
                      const std::vector<ContextPtr>& contexts,
                      std::vector<double>& us) {
  std::vector<bool> known(us.size());
  for (;;) {
    const size_t best =
        size_t(std::min_element(us.begin() + 1, us.end()) - us.begin());
    if (known[best] || us[0] <= kAlike * us[best]) {
      return;
    }
    const Turns duel =
        playRounds(entry, elements, {contexts[0], contexts[best]}, kDuelRounds,
                   iterationsFor(us[best] * 1e-6));
    us[best] = us[0] * duel.ratio(1, 0);
    known[best] = true;
  }
}

std::vector<Contestant> Contest::measure(const Entry& entry, size_t elements) {
  if (automatic_ == nullptr) {
    connectAll();
  }
  const auto names = algorithmsOf(entry.collective, *control_);
  std::vector<ContextPtr> contexts{automatic_};
  std::vector<Contestant> result{{"auto"}};
  for (size_t i = 0; i < names.size(); i++) {
    contexts.push_back(forced_[i]);
    result.push_back({names[i]});
  }
  auto us = measure(entry, elements, contexts);
  rematch(entry, elements, contexts, us);
  for (size_t i = 0; i < us.size(); i++) {
    result[i].us = us[i];
  }
  return result;
}

}  // namespace benchmark
