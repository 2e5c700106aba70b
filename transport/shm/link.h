// A link through a segment that two processes share. Frames go through rings;
// where the kernel permits it, the peer's memory is read straight from there.
//
// Everything under the domain's lock; see transport/base/link.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gloo/config.h"
#include "transport/base/destruction.h"
#include "transport/base/link.h"
#include "transport/base/socket.h"
#include "transport/shm/loans.h"
#include "transport/shm/poller.h"
#include "transport/shm/process_memory.h"
#include "transport/shm/queue.h"
#include "transport/shm/record.h"
#include "transport/shm/segment.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

// What a link is made of.
struct Connection {
  std::shared_ptr<Segment> segment;
  End end = End::kMaker;
  base::UniqueFd socket;  // non-blocking
  pid_t pid = 0;
  ProcessMemory memory;
};

class ShmLink final : public base::Link {
 public:
  // Throws IoException.
  ShmLink(ShmPoller& poller, Connection connection, const base::LinkCaps& caps,
          base::LinkHandler& handler);
  ~ShmLink() override;

  const base::LinkCaps& caps() const override { return caps_; }
  [[nodiscard]] bool send(const base::FrameHeader& header, const char* payload,
                          void* token) override;
  [[nodiscard]] bool sendNow(const base::ShortMessage& message,
                             const char* payload) override;
  [[nodiscard]] bool writeNow(const char* local, size_t bytes,
                              base::RemoteMemory remote,
                              uint32_t immediate) override;
  [[nodiscard]] bool read(char* local, size_t bytes, const base::Region* region,
                          base::RemoteMemory remote, void* token) override;
  bool reads(base::RemoteMemory remote, size_t bytes,
             bool crowded) const override;
  void lend(const char* data, size_t bytes) override;
  std::shared_ptr<const base::PeerMemory> peerMemory() const override {
    return memory_.permitted() ? memory_.reader() : nullptr;
  }
  void finish() override;
  void finishWith(const base::FrameHeader& last, const char* payload) override;
  bool flushed() const override { return queue_.empty(); }
  bool finished() const override;
  void abandon() override;
  bool peerHasEnded() const override;
  std::string str() const override;
  std::string kind() const override { return "shm"; }

  // ---- For the poller. poll() may call the handler, which may destroy this.
  // ----

  // True if anything moved.
  bool poll();
  // The socket has something to say: a ring, a loan, or the end.
  void onSocket();
  void onProcessEnded();
  // Before sleep: rings are asked for, or to be woken on `words`, of which it
  // adds wordsToArm() at most. True when there is work already.
  bool arm(base::FutexWords* words);
  size_t wordsToArm() const;
  void disarm();

 private:
  struct Read {
    char* local;
    size_t bytes;
    uint64_t remote;
    void* token;
  };
  struct Completion {
    void* token;
    bool refused = false;  // a read that is not permitted any more
  };
  // Bytes that one round reads from the peer's memory: other links, and the
  // deadlines, have their turn in between.
  static constexpr size_t kReadBudget = size_t{1} << 20;
  // kStopped: the handler has refused a payload.
  enum class Input : uint8_t { kOpen, kStopped, kEnded };

  bool put(const base::FrameHeader& header, const char* payload,
           FrameProgress& progress);
  bool flush();
  void flushEnd();
  void ringPeer(bool woken);
  void countSent(size_t bytes);

  bool receive();
  bool onBound(const FrameReader::BoundWrite& write);
  bool onMessage();
  bool onEvent(FrameReader::Event event);
  bool readQueued();
  bool copyFrom(const Read& read);
  int copyNow(const Read& read);
  void report();
  bool checkEnd();
  void lose(const std::string& text, bool ended);
  void giveUp(const std::string& text);
  void tellLost(const std::string& text, bool ended);
  void closeSocket();
  void watchProcess();
  void ignorePeer();
  void onException(const std::exception& e);
  // Runs a call of the handler's; false when it was the last one.
  template <typename Call>
  bool notify(const Call& call);

  ShmPoller& poller_;
  base::Origin origin_;
  base::UniqueFd socket_;
  const std::shared_ptr<Segment> segment_;
  ProcessMemory memory_;
  const base::LinkCaps caps_;
  base::LinkHandler& handler_;
  const pid_t pid_;
  uint32_t place_ = 0;
  base::UniqueFd process_;  // unless memory_ has it
  int watchedProcess_ = -1;

  FrameWriter writer_;
  FrameQueue queue_;
  std::vector<Completion> completed_;  // not yet reported
  std::vector<Read> reads_;
  Loans loans_;
  size_t readBudget_ = 0;  // bytes that may still be read in this round
  int readError_ = 0;
  bool finishing_ = false;
  bool endSent_ = false;
  bool muted_ = false;  // the handler hears nothing any more

  Input input_ = Input::kOpen;
  FrameReader reader_;
  bool peerGone_ = false;          // the socket has ended, or the process
  base::Destruction destruction_;  // the handler may destroy this
};

}  // namespace transport::shm
GLOO_NAMESPACE_END
