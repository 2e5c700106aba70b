// One port of one opened RDMA device: its context, protection domain and
// completion channel, and what it can do. Under the domain's lock, but for what
// never changes: settings, device, maxMessage, context, pd and channel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gloo/config.h"
#include "gloo/transport/ibverbs/device.h"
#include "transport/ibverbs/handles.h"
#include "transport/ibverbs/ports.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {

class Adapter {
 public:
  // Throws as CreateDevice does.
  explicit Adapter(const attr& wanted);

  const attr& settings() const { return settings_; }
  const ChosenPort& chosen() const { return chosen_; }
  const ibv_device_attr& device() const { return device_; }
  const ibv_port_attr& port() const { return port_; }
  ibv_mtu mtu() const { return mtu_; }
  // Bytes of one message; 2^31 in the standard, less in some devices. As it was
  // at first: contexts that are made later have links of the same shape.
  uint64_t maxMessage() const { return maxMessage_; }
  int speedMbps() const;

  // The port may have another address by now, or the same at another index, or
  // another partition, which queue pairs made later use.
  void refresh();
  // The same of the LID alone, and nothing where there are none: one question.
  void refreshLid();
  // Throws IoException when the port has lost its address.
  void requireAddress() const;
  // Of a queue pair that has told its peer this LID, or this GID: why it is not
  // reached there any more; empty: it is.
  std::string whyNotAt(uint16_t lid) const;
  std::string whyNotAt(const Gid& gid) const;
  // Of the port's partition table (InfiniBand specification, volume 1, 10.9):
  // what queue pairs made from now on use.
  struct Partition {
    int index = 0;
    uint16_t key = 0;  // 0: unknown, or on RoCE, where all are in the same one
    bool operator==(const Partition&) const = default;
  };
  const Partition& partition() const { return partition_; }
  // What the port has of it, at its index if it is there, else at any; null:
  // nothing.
  const Gid* find(const Gid& gid) const;

  ibv_context* context() const { return context_.get(); }
  ibv_pd* pd() const { return pd_.get(); }
  ibv_comp_channel* channel() const { return channel_.get(); }

 private:
  ContextHandle open();
  void checkSettings() const;
  void query();
  int queryPort();
  void take(const ibv_port_attr& port);
  std::string lost(const Gid& gid) const;
  void readPartition();
  uint16_t partitionKeyAt(int index) const;

  attr settings_;
  ChosenPort chosen_;
  const ChosenPort first_;  // when this was made
  bool gidLost_ = false;
  std::vector<Gid> gids_;  // of the port, as far as queue pairs may use them
  ContextHandle context_;
  ChildClosed commands_;
  ChildClosed events_;
  ibv_device_attr device_{};
  ibv_port_attr port_{};
  uint64_t maxMessage_ = 0;
  ibv_mtu mtu_ = IBV_MTU_1024;
  Partition partition_;
  PdHandle pd_;
  ChannelHandle channel_;
  ChildClosed completions_;
};

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
