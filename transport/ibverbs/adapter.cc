#include "transport/ibverbs/adapter.h"

#include <endian.h>
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "gloo/common/error.h"
#include "gloo/common/string.h"
#include "transport/base/socket.h"
#include "transport/base/topology.h"
#include "transport/ibverbs/qp_address.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {
namespace {

using namespace std::chrono_literals;  // NOLINT

constexpr size_t kMaxMemory = size_t{1} << 40;

// Both are read only when something has come.
void setNonBlocking(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

template <typename T>
void checkRange(const char* name, T value, T least, T most,
                const char* unit = "") {
  if (value < least || value > most) {
    GLOO_THROW_INVALID_OPERATION_EXCEPTION("ibverbs attribute ", name, " = ",
                                           value, unit, " is not between ",
                                           least, " and ", most, unit);
  }
}

void checkTime(const char* name, std::chrono::milliseconds value,
               std::chrono::milliseconds least,
               std::chrono::milliseconds most) {
  checkRange(name, value.count(), least.count(), most.count(), " ms");
}

ibv_mtu mtuOf(int bytes) {
  for (const auto mtu :
       {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096}) {
    if (bytes == 128 << mtu) {
      return mtu;
    }
  }
  GLOO_THROW_INVALID_OPERATION_EXCEPTION(
      "ibverbs attribute mtu = ", bytes,
      " is none of 256, 512, 1024, 2048, 4096; 0 is the port's own");
}

template <typename T>
T* require(T* object, const char* what, const std::string& device) {
  if (object == nullptr) {
    const int error = errno;
    GLOO_THROW_IO_EXCEPTION("Cannot create ", what, " on RDMA device ", device,
                            ": ", base::errnoText(error),
                            error == ENOMEM
                                ? "; the device has no more of them, or"
                                  " memory may not be locked (ulimit -l)"
                                : base::errnoRemedy(error));
  }
  return object;
}

}  // namespace

Adapter::Adapter(const attr& wanted)
    : settings_(wanted),
      chosen_(
          (checkSettings(),
           choosePort(listDevices(), {wanted.name, wanted.port, wanted.index,
                                      base::Topology::instance().home()}))),
      first_(chosen_),
      gids_{chosen_.gid},
      context_(open()),
      commands_(context_->cmd_fd),
      events_(context_->async_fd),
      pd_(require(api().allocPd(context_.get()), "a protection domain",
                  chosen_.device)),
      channel_(require(api().createCompChannel(context_.get()),
                       "a completion channel", chosen_.device)),
      completions_(channel_->fd) {
  setNonBlocking(context_->async_fd);
  setNonBlocking(channel_->fd);
  query();
}

void Adapter::checkSettings() const {
  const attr& s = settings_;
  checkRange("pkeyIndex", s.pkeyIndex, -1, 65535);
  checkRange("serviceLevel", s.serviceLevel, 0, 15);
  checkRange("trafficClass", s.trafficClass, 0, 255);
  checkRange("hopLimit", s.hopLimit, 1, 255);
  checkRange("timeout", s.timeout, 1, 31);
  checkRange("retryCount", s.retryCount, 0, 7);
  checkRange("rnrTimer", s.rnrTimer, 1, 31);
  checkRange("rnrRetryCount", s.rnrRetryCount, 0, 6);
  checkRange("sendQueue", s.sendQueue, 8, 1 << 15);
  checkRange("receives", s.receives, 8, 1 << 15);
  checkRange("inlineBytes", s.inlineBytes, 0, 1 << 15);
  checkRange("readsAtATime", s.readsAtATime, 0, 255);
  checkRange<size_t>("maxMessageBytes", s.maxMessageBytes,
                     QpAddress::kLeastMaxMessage, size_t{1} << 31);
  checkRange<size_t>("creditBytes", s.creditBytes, 1024, kMaxMemory);
  checkRange<size_t>("callBytes", s.callBytes, 0, kMaxMemory);
  checkRange<size_t>("eagerMemoryBytes", s.eagerMemoryBytes, 65536, kMaxMemory);
  checkRange("completionQueue", s.completionQueue, 1, 1 << 22);
  checkTime("portDownTime", s.portDownTime, 0ms, 1h);
  checkTime("gidLostTime", s.gidLostTime, 0ms, 1h);
  checkTime("hostTimeout", s.hostTimeout, 1s, 1h);
  checkTime("reasonTime", s.reasonTime, 0ms, 1min);
  if (s.mtu != 0) {
    (void)mtuOf(s.mtu);
  }
}

ContextHandle Adapter::open() {
  int count = 0;
  const std::unique_ptr<ibv_device*, decltype(api().freeDeviceList)> list(
      api().getDeviceList(&count), api().freeDeviceList);
  for (int i = 0; list != nullptr && i < count; i++) {
    if (chosen_.device == api().getDeviceName(list.get()[i])) {
      return ContextHandle(require(api().openDevice(list.get()[i]), "a context",
                                   chosen_.device));
    }
  }
  GLOO_THROW_IO_EXCEPTION("RDMA device ", chosen_.device,
                          " has gone while it was being opened");
}

void Adapter::query() {
  int error = api().queryDevice(context_.get(), &device_);
  if (error == 0) {
    error = queryPort();
  }
  if (error != 0) {
    GLOO_THROW_IO_EXCEPTION("Cannot query RDMA device ", chosen_.device, ": ",
                            base::errnoText(error));
  }
  maxMessage_ = settings_.maxMessageBytes;
  if (port_.max_msg_sz != 0) {
    maxMessage_ = std::min<uint64_t>(maxMessage_, port_.max_msg_sz);
  }
  if (maxMessage_ < QpAddress::kLeastMaxMessage) {
    GLOO_THROW_IO_EXCEPTION("RDMA device ", chosen_.device,
                            " sends no messages of ",
                            QpAddress::kLeastMaxMessage, " bytes, but of ",
                            maxMessage_, " at most");
  }
  readPartition();
}

int Adapter::queryPort() {
  ibv_port_attr now{};
  const int error =
      api().queryPort(context_.get(), static_cast<uint8_t>(chosen_.port), &now);
  if (error == 0) {
    take(now);
  }
  return error;
}

void Adapter::take(const ibv_port_attr& port) {
  port_ = port;
  chosen_.lid = port_.lid;
  mtu_ = settings_.mtu == 0 ? port_.active_mtu : mtuOf(settings_.mtu);
  mtu_ = std::min(mtu_, port_.active_mtu);
}

void Adapter::refresh() {
  RdmaDevice now;
  now.attr = device_;
  const std::string why = readPorts(context_.get(), now);
  const size_t own = static_cast<size_t>(chosen_.port) - 1;
  if (own < now.ports.size()) {
    take(now.ports[own].attr);
    readPartition();
  }
  if (!why.empty()) {
    GLOO_WARN("Cannot query RDMA device ", chosen_.device, ": ", why);
    return;
  }
  if (chosen_.gidIndex < 0) {
    return;
  }
  gids_ = now.ports[own].gids;
  const Gid* const gid =
      findGidAgain(first_, now.ports[own], settings_.index >= 0);
  gidLost_ = gid == nullptr;
  if (!gidLost_) {
    chosen_.gidIndex = gid->index;
    chosen_.gid = *gid;
  }
}

void Adapter::refreshLid() {
  if (port_.link_layer == IBV_LINK_LAYER_ETHERNET) {
    return;
  }
  if (const int error = queryPort(); error != 0) {
    GLOO_WARN("Cannot query RDMA device ", chosen_.device, ": ",
              base::errnoText(error));
  }
}

// 0: none, or unknown.
uint16_t Adapter::partitionKeyAt(int index) const {
  __be16 key = 0;
  return api().queryPkey(context_.get(), static_cast<uint8_t>(chosen_.port),
                         index, &key) == 0
             ? be16toh(key)
             : 0;
}

// If none is asked for, the first in which the port is a full member, as
// limited ones do not hear each other; else the first.
void Adapter::readPartition() {
  const int wanted = settings_.pkeyIndex;
  partition_ = {std::max(wanted, 0), 0};
  if (port_.link_layer == IBV_LINK_LAYER_ETHERNET) {
    return;
  }
  if (wanted >= 0) {
    partition_.key = partitionKeyAt(wanted);
    return;
  }
  for (int index = 0; index < port_.pkey_tbl_len; index++) {
    const uint16_t key = partitionKeyAt(index);
    const bool isPartition = (key & ~QpAddress::kFullMember) != 0;
    const bool isFull = (key & QpAddress::kFullMember) != 0;
    if (isPartition && (isFull || partition_.key == 0)) {
      partition_ = {index, key};
    }
    if (isPartition && isFull) {
      return;
    }
  }
}

void Adapter::requireAddress() const {
  if (gidLost_) {
    GLOO_THROW_IO_EXCEPTION(lost(chosen_.gid));
  }
}

std::string Adapter::lost(const Gid& gid) const {
  return MakeString("port ", chosen_.port, " of RDMA device ", chosen_.device,
                    " has lost its GID ", gid.str(),
                    " (was the address of its network interface removed?)");
}

std::string Adapter::whyNotAt(uint16_t lid) const {
  if (port_.lid == lid || port_.lid == 0) {
    return std::string();
  }
  return MakeString("port ", chosen_.port, " of RDMA device ", chosen_.device,
                    " has LID ", port_.lid, " now, and no longer ", lid,
                    ", to which the peer sends: make a new context");
}

std::string Adapter::whyNotAt(const Gid& gid) const {
  if (chosen_.gidIndex < 0 || find(gid) != nullptr) {
    return std::string();
  }
  return lost(gid) + ", to which the peer sends: make a new context";
}

const Gid* Adapter::find(const Gid& gid) const {
  const Gid* found = nullptr;
  for (const Gid& other : gids_) {
    if (other.isSame(gid) && (found == nullptr || other.index == gid.index)) {
      found = &other;
    }
  }
  return found;
}

// The encodings of the PortInfo attribute, InfiniBand specification 14.2.5.6.
int Adapter::speedMbps() const {
  constexpr std::array<std::pair<int, int>, 8> kLanes{{{1, 2500},
                                                       {2, 5000},
                                                       {4, 10000},
                                                       {8, 10000},
                                                       {16, 14063},
                                                       {32, 25781},
                                                       {64, 53125},
                                                       {128, 106250}}};
  constexpr std::array<std::pair<int, int>, 5> kWidths{
      {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}}};
  const auto find = [](const auto& table, int key) {
    const auto it = std::find_if(table.begin(), table.end(),
                                 [key](auto& e) { return e.first == key; });
    return it != table.end() ? it->second : 0;
  };
  return find(kLanes, port_.active_speed) * find(kWidths, port_.active_width);
}

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
