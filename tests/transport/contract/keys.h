// Remote keys on their way to another rank.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "tests/transport/contract/contract.h"

GLOO_NAMESPACE_BEGIN
namespace test {

constexpr uint64_t kKeySlot = 77;

// A key on its way: 255 bytes, the first says how many of the others count.
class KeyMessage : public Message {
 public:
  explicit KeyMessage(const ContextPtr& context)
      : Message(context, size_t{255}), context_(context) {}

  void send(int peer, const transport::UnboundBuffer& exported,
            transport::RemoteAccess access) {
    const std::string text = exported.getRemoteKey(access)->serialize();
    ASSERT_LT(text.size(), bytes.size());
    bytes[0] = static_cast<char>(text.size());
    std::copy(text.begin(), text.end(), bytes.begin() + 1);
    buffer->send(peer, kKeySlot);
  }

  std::unique_ptr<transport::RemoteKey> recv(int peer) {
    buffer->recv(peer, kKeySlot);
    EXPECT_TRUE(buffer->waitRecv());
    return context_->deserializeRemoteKey(
        std::string(bytes.data() + 1, static_cast<uint8_t>(bytes[0])));
  }

 private:
  const ContextPtr context_;
};

inline void sendKey(
    const ContextPtr& context, int peer,
    const transport::UnboundBuffer& exported,
    transport::RemoteAccess access = transport::RemoteAccess::kReadWrite) {
  KeyMessage message(context);
  message.send(peer, exported, access);
  EXPECT_TRUE(message.buffer->waitSend());
}

inline std::unique_ptr<transport::RemoteKey> recvKey(const ContextPtr& context,
                                                     int peer) {
  return KeyMessage(context).recv(peer);
}

// Both ranks at once.
inline std::unique_ptr<transport::RemoteKey> exchangeKeys(
    const ContextPtr& context, int peer,
    const transport::UnboundBuffer& exported,
    transport::RemoteAccess access = transport::RemoteAccess::kReadWrite) {
  KeyMessage out(context);
  out.send(peer, exported, access);
  auto key = recvKey(context, peer);
  EXPECT_TRUE(out.buffer->waitSend());
  return key;
}

}  // namespace test
GLOO_NAMESPACE_END
