// A stream link over one TCP connection: each frame is a 64-byte head with its
// payload behind it. Small frames leave in one system call; what arrives is
// read in batches, and large payloads straight to their place.
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
#include "transport/base/wire.h"
#include "transport/tcp/poller.h"
#include "transport/tcp/queue.h"

GLOO_NAMESPACE_BEGIN
namespace transport::tcp {

class TcpLink final : public base::Link {
 public:
  // `socket` is connected and non-blocking. Throws IoException.
  TcpLink(TcpPoller& poller, base::UniqueFd socket, const base::LinkCaps& caps,
          base::LinkHandler& handler);
  ~TcpLink() override;

  const base::LinkCaps& caps() const override { return caps_; }
  [[nodiscard]] bool send(const base::FrameHeader& header, const char* payload,
                          void* token) override;
  void hold() override { hold_ = true; }
  void expect(bool waiting) override;
  void finish() override;
  void finishWith(const base::FrameHeader& last, const char* payload) override;
  bool flushed() const override { return queue_.empty(); }
  bool finished() const override;
  void abandon() override;
  std::string str() const override;
  std::string kind() const override { return "tcp"; }

  // ---- For the poller. Each may call the handler, which may destroy this.
  // ----

  // Reports what ended, and sends what is queued; true if anything moved.
  bool progress();
  // Reads what has arrived, once.
  bool receive();
  // Fails when the peer's host has not answered for seconds; true while bytes
  // are under way.
  bool checkStalled();

  bool expected() const { return expected_; }
  bool hasOutput() const { return !queue_.empty() && sendError_ == 0; }
  // Something to report at the next poll.
  bool hasNews() const {
    return !completed_.empty() ||
           (socket_ && (input_ == Input::kEnded
                            ? !hasOutput()
                            : input_ == Input::kOpen && sendError_ != 0));
  }
  bool busy() const { return expected_ || hasOutput() || hasNews(); }

 private:
  // What is read ahead of a head: small, because a large payload's first bytes
  // that come with it are copied.
  static constexpr size_t kBufferBytes = 16 << 10;

  // kStopped: the handler has refused a payload.
  enum class Input : uint8_t { kOpen, kStopped, kEnded };

  size_t transmit(const base::FrameHeader& header, const char* payload);
  bool flush();
  void countCall();
  void shutDown();
  ssize_t readOnce();
  void takePayload(size_t n);
  void parse();
  bool beginFrame();
  bool endFrame();
  void endInput(int error);
  void report();
  void lose(const std::string& text, bool ended);
  void closeSocket();
  void onException(const std::exception& e);
  // Runs a call of the handler's; false when reading must not go on.
  template <typename Call>
  bool notify(const Call& call);

  TcpPoller& poller_;
  base::UniqueFd socket_;
  const base::LinkCaps caps_;
  base::LinkHandler& handler_;
  const std::string name_;
  uint32_t place_ = 0;
  size_t callBytes_ = 0;  // handed to one system call at most
  uint32_t calls_ = 0;

  FrameQueue queue_;
  bool hold_ = false;             // the next frame may wait for another
  bool holding_ = false;          // the last one in the queue does
  std::vector<void*> completed_;  // tokens not yet reported
  int sendError_ = 0;
  bool expected_ = false;
  bool finishing_ = false;
  bool shutDown_ = false;
  bool muted_ = false;  // the handler hears nothing any more

  Input input_ = Input::kOpen;
  std::unique_ptr<char[]> buffer_;
  size_t begin_ = 0;  // of what is in buffer_ and not yet looked at
  size_t end_ = 0;
  base::FrameHeader header_;       // of the frame that is arriving
  char* payload_ = nullptr;        // its place, as the handler said
  size_t missing_ = 0;             // bytes of its payload that have not arrived
  base::Destruction destruction_;  // the handler may destroy this
};

}  // namespace transport::tcp
GLOO_NAMESPACE_END
