#include "rendezvous/record_reader.h"

#include <algorithm>

#include "gloo/common/env.h"
#include "gloo/common/error.h"
#include "gloo/internal/thread.h"
#include "rendezvous/one_for_each.h"
#include "rendezvous/operation_deadline.h"
#include "rendezvous/record.h"
#include "rendezvous/socket.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

namespace {

using std::chrono::milliseconds;
using Clock = Deadline::Clock;

// One wait of our own stores, which cannot all be stopped, and what a look at
// records that were there before may take.
constexpr milliseconds kPeekSlice(200);
// As many keys at a time are waited for. A server keeps a list of waiters for
// each key: with all keys, that of a large job had the square of its ranks.
constexpr size_t kMostWaited = 64;
// Others with v2 calls: one wait for everybody, then one short wait for each
// rank.
constexpr milliseconds kWaitSlice(500);
constexpr milliseconds kSweepSlice(5);
// A store whose calls fail so soon, this often in a row, is broken.
constexpr milliseconds kSoon(250);
constexpr int kMaxFailures = 5;
// One wait of those that are asked in turn, where there is more time or no
// limit: a store adds it to the time of now, or makes an int of milliseconds.
constexpr milliseconds kLongestWait = std::chrono::hours(20 * 24);

Store* peekableOf(IStore& store) {
  auto* const ours = dynamic_cast<Store*>(&store);
  return ours != nullptr && ours->has_peek_support() ? ours : nullptr;
}

Deadline sooner(Deadline deadline, milliseconds limit) {
  return Deadline(std::min(deadline.at(), Clock::now() + limit));
}

// A wait of no time may be one without end.
milliseconds waitOf(milliseconds left, milliseconds most) {
  return std::clamp(left, milliseconds(1), most);
}

bool useV2(IStore& store) {
  return store.has_v2_support() &&
         Environment::fromEnvironment().enableStoreV2Api;
}

}  // namespace

RecordReader::RecordReader(IStore& store, int size, Deadline deadline)
    : store_(store),
      peekable_(peekableOf(store)),
      inTurn_(peekable_ == nullptr && !useV2(store)),
      deadline_(deadline) {
  for (int rank = 0; rank < size; rank++) {
    keys_.push_back(recordKey(rank));
  }
}

RecordReader::~RecordReader() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

std::vector<std::string> RecordReader::keysOf(
    const std::vector<int>& ranks) const {
  std::vector<std::string> keys;
  for (const int rank : ranks) {
    keys.push_back(keys_[rank]);
  }
  return keys;
}

std::vector<std::optional<RecordReader::Bytes>> RecordReader::peekAll() {
  if (!canPeek()) {
    return std::vector<std::optional<Bytes>>(keys_.size());
  }
  const OperationDeadline limit(deadline_);
  return oneForEach(keys_, peekable_->peek(keys_));
}

void RecordReader::start(std::vector<int> ranks) {
  missing_ = std::move(ranks);
  if (!missing_.empty()) {
    gathering_ = true;
    thread_ = internal::startThread([this] { run(); });
  }
}

std::vector<RecordReader::Arrival> RecordReader::take() {
  std::lock_guard lock(mutex_);
  if (arrivals_.empty() && error_ != nullptr) {
    std::rethrow_exception(error_);
  }
  return std::exchange(arrivals_, {});
}

std::optional<std::vector<std::optional<RecordReader::Bytes>>>
RecordReader::readAgain(const std::vector<int>& ranks) {
  {
    std::lock_guard lock(mutex_);
    if (inTurn_ && gathering_) {
      return std::nullopt;
    }
  }
  std::vector<std::optional<Bytes>> found(ranks.size());
  const auto keys = keysOf(ranks);
  const OperationDeadline limit(sooner(deadline_, kPeekSlice));
  try {
    if (canPeek()) {
      return oneForEach(keys, peekable_->peek(keys));
    }
    if (useV2(store_)) {
      auto values = oneForEach(keys, store_.multi_get(keys));
      std::move(values.begin(), values.end(), found.begin());
      return found;
    }
    for (size_t i = 0; i < ranks.size(); i++) {
      found[i] = getOne(ranks[i]);
    }
    return found;
  } catch (const TransientError& error) {
    noteTrouble(error);
    return std::nullopt;
  }
}

std::string RecordReader::describeStore() const {
  const auto* const named = dynamic_cast<const Store*>(&store_);
  return named != nullptr ? named->str() : "store";
}

std::string RecordReader::storeTrouble() {
  std::lock_guard lock(mutex_);
  return trouble_;
}

void RecordReader::noteTrouble(const std::exception& error) {
  std::lock_guard lock(mutex_);
  trouble_ = error.what();
}

void RecordReader::pause(milliseconds time) {
  std::unique_lock lock(mutex_);
  wake_.wait_until(lock, Clock::now() + time, [&] { return stopped(); });
}

void RecordReader::arrived(std::vector<Arrival> arrivals) {
  failures_ = 0;
  for (const auto& arrival : arrivals) {
    missing_.erase(std::find(missing_.begin(), missing_.end(), arrival.rank));
  }
  std::lock_guard lock(mutex_);
  std::move(arrivals.begin(), arrivals.end(), std::back_inserter(arrivals_));
  trouble_.clear();
}

void RecordReader::run() {
  try {
    if (canPeek()) {
      gatherByPeeking();
    } else if (inTurn_) {
      gatherInTurn();
    } else {
      gatherByWaiting();
    }
  } catch (...) {
    std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
  std::lock_guard lock(mutex_);
  gathering_ = false;
}

// All, or evenly spaced ones, next time their neighbours: where many are
// missing, one that comes is one of many, and the last ones are all waited for.
std::vector<std::string> RecordReader::sampleOf(
    const std::vector<std::string>& keys) {
  const size_t step = (keys.size() + kMostWaited - 1) / kMostWaited;
  std::vector<std::string> sample;
  for (size_t i = waits_++ % step; i < keys.size(); i += step) {
    sample.push_back(keys[i]);
  }
  return sample;
}

// A server that many ask at the same time may be late with the answer: then a
// look tells, which is not cut short.
bool RecordReader::someMayHaveCome(const std::vector<std::string>& keys) {
  try {
    return peekable_->wait_any(sampleOf(keys), sooner(deadline_, kPeekSlice));
  } catch (const TransientError& error) {
    noteTrouble(error);
    return !stopped();
  }
}

void RecordReader::gatherByPeeking() {
  // Looks take the time that they take: an answer that nobody waits for is made
  // all the same, and a busy server would make all of them in vain.
  const OperationDeadline limit(deadline_, &stop_);
  int burst = 0;
  while (!missing_.empty() && !stopped() && !deadline_.expired()) {
    const auto begin = Clock::now();
    const auto keys = keysOf(missing_);
    if (!someMayHaveCome(keys)) {
      continue;
    }
    try {
      auto found = oneForEach(keys, peekable_->peek(keys));
      std::vector<Arrival> arrivals;
      for (size_t i = 0; i < found.size(); i++) {
        if (found[i]) {
          arrivals.push_back({missing_[i], std::move(*found[i])});
        }
      }
      arrived(std::move(arrivals));
    } catch (const TransientError& error) {
      noteTrouble(error);
    }
    // While ranks arrive in quick succession, larger batches: the number of
    // reads must not grow with the number of ranks.
    constexpr milliseconds kQuick(10);
    burst = Clock::now() - begin < kQuick ? std::min(burst + 1, 10) : 0;
    pause(milliseconds(burst));
  }
}

void RecordReader::gatherByWaiting() {
  while (!missing_.empty() && !stopped() && !deadline_.expired()) {
    if (!waitForAll(waitOf(deadline_.left(), kWaitSlice))) {
      sweep();
    }
  }
}

void RecordReader::gatherInTurn() {
  while (!missing_.empty() && !stopped() && !deadline_.expired()) {
    const int rank = missing_.front();
    const auto begin = Clock::now();
    std::vector<Arrival> arrivals;
    try {
      store_.wait({keys_[rank]}, waitOf(deadline_.left(), kLongestWait));
      arrivals.push_back({rank, getOne(rank)});
    } catch (const std::exception& error) {
      failed(Clock::now() - begin < kSoon, error);
      continue;
    }
    arrived(std::move(arrivals));
  }
}

// A wait that fails long before its time is over is an error of the store; one
// that fails in time is the usual way to say "not yet".
void RecordReader::failed(bool soon, const std::exception& error) {
  if (!soon) {
    failures_ = 0;
    return;
  }
  if (++failures_ >= kMaxFailures) {
    throw RendezvousException(error.what());
  }
  pause(milliseconds(10 * failures_));
}

// Whether all came.
bool RecordReader::waitForAll(milliseconds slice) {
  const auto begin = Clock::now();
  const auto keys = keysOf(missing_);
  std::vector<Bytes> values;
  try {
    store_.wait(keys, slice);
    values = store_.multi_get(keys);
  } catch (const std::exception& error) {
    failed(Clock::now() - begin < slice / 2, error);
    return false;
  }
  values = oneForEach(keys, std::move(values));  // not an error of a wait
  std::vector<Arrival> arrivals;
  for (size_t i = 0; i < values.size(); i++) {
    arrivals.push_back({missing_[i], std::move(values[i])});
  }
  arrived(std::move(arrivals));
  return true;
}

void RecordReader::sweep() {
  std::vector<Arrival> arrivals;
  for (const int rank : missing_) {
    if (stopped() || deadline_.expired()) {
      break;
    }
    try {
      store_.wait({keys_[rank]}, kSweepSlice);
      arrivals.push_back({rank, getOne(rank)});
    } catch (const std::exception&) {
      // Not there yet; waitForAll() notices when the store is broken.
    }
  }
  if (!arrivals.empty()) {
    arrived(std::move(arrivals));
  }
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
