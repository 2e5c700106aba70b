// Gathers the records of all ranks from a store of any kind, while another
// thread connects to those that are there already.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gloo/common/deadline.h"
#include "gloo/common/store.h"
#include "gloo/config.h"
#include "gloo/rendezvous/store.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// Called from one thread; has one of its own. Three kinds of stores:
// - ours (has_peek_support): records are taken as they come, in one batch each;
// - others with v2 calls: one wait and one multi_get if all come soon, and
//   ranks that are there are found at least every second;
// - those with set, get and wait only: the ranks in turn, each with one wait
//   that may take all the time there is, and no other call meanwhile. The
//   server of PyTorch 1.13's TCPStore remembers a wait that has timed out, and
//   answers it later, to whatever is asked then; and its calls hold one lock.
class RecordReader {
 public:
  using Bytes = std::vector<char>;
  struct Arrival {
    int rank = -1;
    Bytes bytes;
  };

  RecordReader(IStore& store, int size, Deadline deadline);
  // Stops waiting; returns within 0.5 s for our own stores, whether or not
  // their server answers, and by the deadline for those that are asked in turn.
  ~RecordReader();
  RecordReader(const RecordReader&) = delete;
  RecordReader& operator=(const RecordReader&) = delete;

  // Whether a missing record can be told from one that takes time.
  bool canPeek() const { return peekable_ != nullptr; }
  // The ranks behind the first missing one have not been looked for.
  bool asksInTurn() const { return inTurn_; }

  // All records that exist; nothing for each rank if !canPeek().
  std::vector<std::optional<Bytes>> peekAll();

  // Before start(): there is another one.
  void setDeadline(Deadline deadline) { deadline_ = deadline; }

  // From now on gather the records of these ranks.
  void start(std::vector<int> ranks);

  // What has arrived since the last call. Throws the store's error.
  std::vector<Arrival> take();

  // Records that were there before, again; nothing where one has disappeared.
  // Nothing at all while the store cannot be reached, or waits for a rank and
  // is of those that are asked in turn.
  std::optional<std::vector<std::optional<Bytes>>> readAgain(
      const std::vector<int>& ranks);

  // The store, for people; and its last trouble, or empty.
  std::string describeStore() const;
  std::string storeTrouble();

 private:
  void run();
  void gatherByPeeking();
  std::vector<std::string> sampleOf(const std::vector<std::string>& keys);
  bool someMayHaveCome(const std::vector<std::string>& keys);
  void noteTrouble(const std::exception& error);
  void gatherByWaiting();
  void gatherInTurn();
  bool waitForAll(std::chrono::milliseconds slice);
  void failed(bool soon, const std::exception& error);
  void sweep();
  void arrived(std::vector<Arrival> arrivals);
  bool stopped() const { return stop_; }
  void pause(std::chrono::milliseconds time);
  Bytes getOne(int rank) { return store_.get(keys_[rank]); }
  std::vector<std::string> keysOf(const std::vector<int>& ranks) const;

  IStore& store_;
  Store* const peekable_;
  const bool inTurn_;
  Deadline deadline_;
  std::vector<std::string> keys_;  // by rank
  std::vector<int> missing_;       // the gathering thread's
  size_t waits_ = 0;               // likewise
  int failures_ = 0;               // likewise: in a row, without time passing

  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<bool> stop_{false};  // changed by mutex_
  bool gathering_ = false;         // by mutex_, as what follows
  std::vector<Arrival> arrivals_;
  std::exception_ptr error_;
  std::string trouble_;
  std::thread thread_;
};

}  // namespace rendezvous
GLOO_NAMESPACE_END
