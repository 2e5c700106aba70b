// gloo::Context over a fake channel: for tests of the collectives' API.
#pragma once

#include <memory>
#include <utility>

#include "gloo/common/error.h"
#include "gloo/context.h"
#include "gloo/internal/channel.h"
#include "tests/support/fake_channel.h"

GLOO_NAMESPACE_BEGIN
namespace testing_support {

// Has a channel and nothing else.
class FakeTransportContext : public transport::Context,
                             public internal::Channel {
 public:
  explicit FakeTransportContext(internal::Channel& channel)
      : transport::Context(channel.rank(), channel.size()), channel_(channel) {}

  std::unique_ptr<transport::Pair>& getPair(int) override { return none_; }
  std::unique_ptr<transport::Pair>& createPair(int) override { return none_; }
  void createAndConnectAllPairs(std::shared_ptr<IStore>) override {}
  std::unique_ptr<transport::UnboundBuffer> createUnboundBuffer(
      void*, size_t) override {
    return nullptr;
  }
  std::unique_ptr<transport::RemoteKey> deserializeRemoteKey(
      const std::string&) override {
    throw InvalidOperationException("fake context: no keys");
  }

  void postSend(internal::Operation& op, int dst, uint64_t slot,
                const void* data, size_t bytes, uint64_t check,
                bool more) override {
    channel_.postSend(op, dst, slot, data, bytes, check, more);
  }
  void postRecv(internal::Operation& op, int src, uint64_t slot, void* data,
                size_t bytes, uint64_t check) override {
    channel_.postRecv(op, src, slot, data, bytes, check);
  }
  bool waitUntil(const std::function<bool()>& ready,
                 Deadline deadline) override {
    return channel_.waitUntil(ready, deadline);
  }
  void poll() override { channel_.poll(); }
  void cancel(internal::Operation& op) override { channel_.cancel(op); }
  void fail(internal::CausePtr cause) override {
    channel_.fail(std::move(cause));
  }
  internal::CausePtr failure() const override { return channel_.failure(); }
  int rank() const override { return channel_.rank(); }
  int size() const override { return channel_.size(); }
  std::string linkName(int peer) const override {
    return channel_.linkName(peer);
  }
  size_t eagerBytes() const override { return channel_.eagerBytes(); }

 private:
  internal::Channel& channel_;
  std::unique_ptr<transport::Pair> none_;
};

class FakeContext final : public ::gloo::Context {
 public:
  explicit FakeContext(internal::Channel& channel, int base = 2)
      : ::gloo::Context(channel.rank(), channel.size(), base) {
    transportContext_ = std::make_shared<FakeTransportContext>(channel);
  }
};

}  // namespace testing_support
GLOO_NAMESPACE_END
