// Devices, contexts, ports, GIDs and asynchronous events.
#include <arpa/inet.h>
#include <endian.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tests/support/fake_verbs/events.h"
#include "tests/support/fake_verbs/fabric.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using Lock = std::lock_guard<std::mutex>;

FakeFabric& fabric() { return FakeFabric::instance(); }

ibv_fork_status isForkInitialized() {
  return fabric().config.kernelCopiesAtForks ? IBV_FORK_UNNEEDED
                                             : IBV_FORK_DISABLED;
}

int forkInit() {
  Lock lock(fabric().mutex);
  if (fabric().config.kernelCopiesAtForks) {
    fabric().misuse.push_back("ibv_fork_init where it is not needed");
  }
  return fabric().failureOf(FakeCall::kForkInit);
}

ibv_device** getDeviceList(int* count) {
  Lock lock(fabric().mutex);
  if (const int error = fabric().failureOf(FakeCall::kGetDeviceList)) {
    errno = error;
    return nullptr;
  }
  const auto& devices = fabric().devices;
  auto* list = new ibv_device*[devices.size() + 1]();
  std::transform(devices.begin(), devices.end(), list,
                 [](const auto& device) { return device.get(); });
  if (count != nullptr) {
    *count = static_cast<int>(devices.size());
  }
  return list;
}

void freeDeviceList(ibv_device** list) { delete[] list; }

const char* getDeviceName(ibv_device* device) { return device->name; }

ibv_context* openDevice(ibv_device* device) {
  Lock lock(fabric().mutex);
  if (const int error = fabric().failureOf(FakeCall::kOpenDevice)) {
    errno = error;
    return nullptr;
  }
  auto context = std::make_unique<FakeContext>();
  context->device = device;
  context->async_fd = context->async.fd;
  context->cmd_fd = eventfd(0, EFD_CLOEXEC);
  context->num_comp_vectors = fabric().config.completionVectors;
  fillCompletionOps(context->ops);
  fillPostOps(context->ops);
  fabric().alive["context"]++;
  fabric().contexts.insert(context.get());
  return context.release();
}

int closeDevice(ibv_context* handle) {
  const std::unique_ptr<FakeContext> context(static_cast<FakeContext*>(handle));
  Lock lock(fabric().mutex);
  if (context->children != 0) {
    fabric().misuse.push_back("a context was closed before its objects");
  }
  close(context->cmd_fd);
  fabric().contexts.erase(context.get());
  fabric().alive["context"]--;
  return 0;
}

int queryDevice(ibv_context*, ibv_device_attr* attr) {
  const FakeVerbsConfig& config = fabric().config;
  *attr = {};
  std::strcpy(attr->fw_ver, "fake");
  attr->phys_port_cnt = static_cast<uint8_t>(config.ports.size());
  attr->max_qp = config.maxQp;
  attr->max_qp_wr = config.maxQpWr;
  attr->max_sge = 16;
  attr->max_sge_rd = 16;
  attr->max_cq = 1 << 12;
  attr->max_cqe = config.maxCqe;
  attr->max_mr = 1 << 16;
  attr->max_mr_size = config.maxRegionBytes;
  attr->max_pd = 1 << 12;
  attr->atomic_cap = config.atomics;
  attr->max_srq = config.maxSrq;
  attr->max_srq_wr = config.maxSrq > 0 ? config.maxQpWr : 0;
  attr->max_qp_rd_atom = config.maxReadsAtATime;
  attr->max_qp_init_rd_atom = config.maxReadsAtATime;
  attr->max_res_rd_atom = config.maxReadsAtATime * config.maxQp;
  attr->max_pkeys = 1;
  return 0;
}

int versionsOf(const FakePort& port) {
  return port.ethernet ? static_cast<int>(port.versions.size()) : 1;
}

int gidsOf(const FakePort& port) {
  return static_cast<int>(port.addresses.size()) * versionsOf(port);
}

int queryPort(ibv_context*, uint8_t number, ibv_port_attr* attr) {
  Lock lock(fabric().mutex);
  fabric().counts.portQueries++;
  if (const int error = fabric().failureOf(FakeCall::kQueryPort)) {
    return error;
  }
  if (number < 1 || number > fabric().ports.size()) {
    return EINVAL;
  }
  const FakePort& port = fabric().ports[number - 1u];
  *attr = {};
  attr->state = port.state;
  attr->max_mtu = IBV_MTU_4096;
  attr->active_mtu = port.mtu;
  attr->gid_tbl_len = gidsOf(port);
  attr->max_msg_sz = port.maxMessageBytes;
  attr->active_speed = port.speed;
  attr->active_width = port.width;
  attr->pkey_tbl_len = static_cast<uint16_t>(port.partitions.size());
  attr->lid = port.lid;
  attr->link_layer =
      port.ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
  return 0;
}

const std::string& addressAt(const FakePort& port, int index) {
  return port.addresses[static_cast<size_t>(index / versionsOf(port))];
}

ibv_gid_entry gidAt(const FakePort& port, int number, int index) {
  ibv_gid_entry entry{};
  const auto version = static_cast<size_t>(index % versionsOf(port));
  inet_pton(AF_INET6, addressAt(port, index).c_str(), entry.gid.raw);
  entry.gid_index = static_cast<uint32_t>(index);
  entry.port_num = static_cast<uint32_t>(number);
  entry.gid_type = !port.ethernet                ? IBV_GID_TYPE_IB
                   : port.versions[version] == 1 ? IBV_GID_TYPE_ROCE_V1
                                                 : IBV_GID_TYPE_ROCE_V2;
  return entry;
}

ssize_t queryGidTable(ibv_context*, ibv_gid_entry* entries, size_t maxEntries) {
  Lock lock(fabric().mutex);
  if (const int error = fabric().failureOf(FakeCall::kQueryGids)) {
    return -error;
  }
  size_t count = 0;
  for (size_t i = 0; i < fabric().ports.size(); i++) {
    const FakePort& port = fabric().ports[i];
    for (int index = 0; index < gidsOf(port); index++) {
      if (addressAt(port, index).empty()) {
        continue;
      }
      if (count == maxEntries) {
        return -EINVAL;  // as the kernel does: the table is longer
      }
      entries[count++] = gidAt(port, static_cast<int>(i) + 1, index);
    }
  }
  return static_cast<ssize_t>(count);
}

int queryPkey(ibv_context*, uint8_t number, int index, __be16* key) {
  Lock lock(fabric().mutex);
  const std::vector<uint16_t>& all = fabric().ports[number - 1u].partitions;
  if (index < 0 || static_cast<size_t>(index) >= all.size()) {
    errno = EINVAL;
    return -1;
  }
  *key = htobe16(all[static_cast<size_t>(index)]);
  return 0;
}

// Of the object that it concerns; null: a port or the device.
uint64_t* unacknowledged(const ibv_async_event& event) {
  if (concernsQp(event.event_type)) {
    return &static_cast<FakeQp*>(event.element.qp)->unacknowledged;
  }
  return event.event_type == IBV_EVENT_CQ_ERR
             ? &static_cast<FakeCq*>(event.element.cq)->unacknowledged
             : nullptr;
}

int getAsyncEvent(ibv_context* handle, ibv_async_event* event) {
  auto& context = *static_cast<FakeContext*>(handle);
  if (!context.async.pop(fabric().mutex, event)) {
    return -1;
  }
  Lock lock(fabric().mutex);
  if (uint64_t* count = unacknowledged(*event)) {
    ++*count;
  }
  return 0;
}

void ackAsyncEvent(ibv_async_event* event) {
  Lock lock(fabric().mutex);
  if (uint64_t* count = unacknowledged(*event)) {
    --*count;
  }
}

const char* wcStatusStr(ibv_wc_status status) {
  static const char* const texts[] = {"success",
                                      "local length error",
                                      "local QP operation error",
                                      "local EE error",
                                      "local protection error",
                                      "Work Request Flushed Error",
                                      "memory bind error",
                                      "bad response",
                                      "local access error",
                                      "remote invalid request error",
                                      "remote access error",
                                      "remote operation error",
                                      "transport retry counter exceeded",
                                      "RNR retry counter exceeded",
                                      "local RDD violation",
                                      "remote invalid RD request",
                                      "aborted error",
                                      "invalid EE context number",
                                      "invalid EE context state",
                                      "fatal error",
                                      "response timeout error",
                                      "general error",
                                      "TM error",
                                      "TM software rendezvous"};
  return status <= IBV_WC_TM_RNDV_INCOMPLETE ? texts[status] : "unknown";
}

const char* eventTypeStr(ibv_event_type event) {
  switch (event) {
    case IBV_EVENT_CQ_ERR:
      return "CQ error";
    case IBV_EVENT_QP_FATAL:
      return "local work queue catastrophic error";
    case IBV_EVENT_QP_REQ_ERR:
      return "invalid request local work queue error";
    case IBV_EVENT_QP_ACCESS_ERR:
      return "local access violation work queue error";
    case IBV_EVENT_PATH_MIG_ERR:
      return "failed path migration";
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return "last WQE reached";
    case IBV_EVENT_DEVICE_FATAL:
      return "local catastrophic error";
    case IBV_EVENT_PORT_ACTIVE:
      return "port active";
    case IBV_EVENT_PORT_ERR:
      return "port error";
    default:
      return "another event";
  }
}

const char* portStateStr(ibv_port_state state) {
  return state == IBV_PORT_ACTIVE ? "PORT_ACTIVE (4)"
         : state == IBV_PORT_DOWN ? "PORT_DOWN (1)"
                                  : "PORT_INIT (2)";
}

}  // namespace

void fillDeviceCalls(transport::ibverbs::Api& api) {
  api.isForkInitialized = &isForkInitialized;
  api.forkInit = &forkInit;
  api.getDeviceList = &getDeviceList;
  api.freeDeviceList = &freeDeviceList;
  api.getDeviceName = &getDeviceName;
  api.openDevice = &openDevice;
  api.closeDevice = &closeDevice;
  api.queryDevice = &queryDevice;
  api.queryPort = &queryPort;
  api.queryGidTable = &queryGidTable;
  api.queryPkey = &queryPkey;
  api.getAsyncEvent = &getAsyncEvent;
  api.ackAsyncEvent = &ackAsyncEvent;
  api.wcStatusStr = &wcStatusStr;
  api.eventTypeStr = &eventTypeStr;
  api.portStateStr = &portStateStr;
}

}  // namespace test
GLOO_NAMESPACE_END
