// Two ends of a loopback connection, with links or with a bare socket on them,
// and a handler that records what a link tells it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gloo/config.h"
#include "transport/base/link.h"
#include "transport/base/progress.h"
#include "transport/base/socket.h"
#include "transport/tcp/factory.h"

GLOO_NAMESPACE_BEGIN
namespace test {

// Connected, both non-blocking.
std::pair<transport::base::UniqueFd, transport::base::UniqueFd> tcpPair();

struct Frame {
  transport::base::FrameHeader header;
  std::string payload;
};

class Recorder : public transport::base::LinkHandler {
 public:
  char* onPayload(const transport::base::FrameHeader& header) override;
  void onFrame(const transport::base::FrameHeader& header,
               const char* payload) override;
  void onBound(uint32_t index, uint64_t offset, const char* payload,
               size_t bytes) override;
  void onWritten(uint32_t) override;
  void onComplete(void* token) override;
  void onLost(internal::Cause cause, bool ended) override;

  std::vector<Frame> frames;
  std::vector<void*> completed;
  std::vector<std::pair<std::string, bool>> losses;
  bool refusePayload = false;
  bool keepFrames = true;
  // Called at the end of each notification, with its name.
  std::function<void(const char*)> hook;

 private:
  std::vector<char> memory_;
};

// One end with a link: its own factory, polled by hand.
class LinkEnd {
 public:
  explicit LinkEnd(transport::base::UniqueFd socket, int peers = 1);
  LinkEnd(transport::tcp::TcpFactory& factory, transport::base::UniqueFd fd);
  ~LinkEnd();

  transport::base::Poller& poller() { return factory_->poller(); }
  uint64_t systemCalls() const;
  // Sends a data frame whose header names the payload.
  bool send(const char* payload, size_t bytes, void* token,
            uint64_t number = 0);

  Recorder recorder;
  std::unique_ptr<transport::base::Link> link;

 private:
  std::unique_ptr<transport::base::ProgressDomain> domain_;
  std::unique_ptr<transport::tcp::TcpFactory> owned_;
  transport::tcp::TcpFactory* factory_;
};

transport::base::FrameHeader dataFrame(size_t bytes, uint64_t number = 0);
// Head and payload as they travel.
std::string wireBytes(const transport::base::FrameHeader& header,
                      const std::string& payload);

// Polls both until the condition holds; false when it does not within 20 s.
bool pollUntil(std::initializer_list<transport::base::Poller*> pollers,
               const std::function<bool()>& done);

// All bytes until the end of file, while polling.
std::string readAll(int socket, transport::base::Poller* poller = nullptr);
void writeAll(int socket, const std::string& bytes);

std::string text(uint64_t seed, size_t bytes);
transport::base::FrameHeader bye();

// A link, and the bare socket of its peer.
struct WithBarePeer {
  WithBarePeer() : WithBarePeer(tcpPair()) {}
  explicit WithBarePeer(
      std::pair<transport::base::UniqueFd, transport::base::UniqueFd> sockets)
      : peer(std::move(sockets.first)), end(std::move(sockets.second)) {}

  bool pollUntil(const std::function<bool()>& done) {
    return test::pollUntil({&end.poller()}, done);
  }

  transport::base::UniqueFd peer;
  LinkEnd end;
};

struct WithLinks {
  WithLinks() : WithLinks(tcpPair()) {}
  explicit WithLinks(
      std::pair<transport::base::UniqueFd, transport::base::UniqueFd> sockets)
      : a(std::move(sockets.first)), b(std::move(sockets.second)) {}

  bool pollUntil(const std::function<bool()>& done) {
    return test::pollUntil({&a.poller(), &b.poller()}, done);
  }

  LinkEnd a;
  LinkEnd b;
};

}  // namespace test
GLOO_NAMESPACE_END
