// The functions of libibverbs that this transport uses, resolved at first use:
// a program starts on hosts without the library, where verbs then have no
// device. Posting, polling and arming are inline functions of <verbs.h> that go
// through ibv_context::ops, so they need no entry here.
#pragma once

#include <infiniband/verbs.h>
#include <sys/types.h>

#include <optional>
#include <string>

#include "gloo/common/error.h"
#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {

// Each member is the function of its name; see its man page. As there: some
// return null or -1 and set errno, others (destroy, modify, query) return a
// positive errno.
struct Api {
  // Null in libraries before rdma-core 35.
  decltype(&::ibv_is_fork_initialized) isForkInitialized = nullptr;
  decltype(&::ibv_fork_init) forkInit = nullptr;
  decltype(&::ibv_get_device_list) getDeviceList = nullptr;
  decltype(&::ibv_free_device_list) freeDeviceList = nullptr;
  decltype(&::ibv_get_device_name) getDeviceName = nullptr;
  decltype(&::ibv_open_device) openDevice = nullptr;
  decltype(&::ibv_close_device) closeDevice = nullptr;
  decltype(&::ibv_query_device) queryDevice = nullptr;
  int (*queryPort)(ibv_context* context, uint8_t port,
                   ibv_port_attr* attr) = nullptr;
  // The valid entries of all ports; returns their number or a negative errno.
  ssize_t (*queryGidTable)(ibv_context* context, ibv_gid_entry* entries,
                           size_t maxEntries) = nullptr;
  decltype(&::ibv_query_pkey) queryPkey = nullptr;
  decltype(&::ibv_get_async_event) getAsyncEvent = nullptr;
  decltype(&::ibv_ack_async_event) ackAsyncEvent = nullptr;

  decltype(&::ibv_alloc_pd) allocPd = nullptr;
  decltype(&::ibv_dealloc_pd) deallocPd = nullptr;
  // Access flags that the kernel does not know are left out if they are
  // optional (IBV_ACCESS_OPTIONAL_RANGE).
  ibv_mr* (*regMr)(ibv_pd* pd, void* address, size_t bytes,
                   unsigned access) = nullptr;
  // Null in libraries before rdma-core 34.
  decltype(&::ibv_reg_dmabuf_mr) regDmabufMr = nullptr;
  decltype(&::ibv_dereg_mr) deregMr = nullptr;

  decltype(&::ibv_create_comp_channel) createCompChannel = nullptr;
  decltype(&::ibv_destroy_comp_channel) destroyCompChannel = nullptr;
  decltype(&::ibv_create_cq) createCq = nullptr;
  decltype(&::ibv_resize_cq) resizeCq = nullptr;
  decltype(&::ibv_destroy_cq) destroyCq = nullptr;
  decltype(&::ibv_get_cq_event) getCqEvent = nullptr;
  decltype(&::ibv_ack_cq_events) ackCqEvents = nullptr;

  decltype(&::ibv_create_qp) createQp = nullptr;
  decltype(&::ibv_modify_qp) modifyQp = nullptr;
  decltype(&::ibv_destroy_qp) destroyQp = nullptr;

  // What queryPort, queryGidTable and regMr of the library's call: <verbs.h>
  // has them as inline functions that add an argument or fall back to another
  // symbol. Inlined they would need the library to be linked.
  struct Hidden {
    int (*queryPort)(ibv_context*, uint8_t, _compat_ibv_port_attr*) = nullptr;
    decltype(&::_ibv_query_gid_table) queryGidTable = nullptr;
    decltype(&::ibv_reg_mr_iova2) regMrIova2 = nullptr;
  };
  Hidden hidden;

  decltype(&::ibv_wc_status_str) wcStatusStr = nullptr;
  decltype(&::ibv_event_type_str) eventTypeStr = nullptr;
  decltype(&::ibv_port_state_str) portStateStr = nullptr;
};

// This host has no RDMA device, or no library for it.
class NoDeviceException : public InvalidOperationException {
 public:
  using InvalidOperationException::InvalidOperationException;
};

struct LoadedApi {
  std::optional<Api> api;
  std::string error;  // why there is none, and the remedy
};

// Opens the library, which stays open: its providers start no thread, but
// contexts may live until the process ends.
LoadedApi loadApi(const char* library);

// libibverbs.so.1, loaded at the first call. Thread-safe; null when there is
// none. Stays the same, except for replaceApi.
const Api* findApi();

// As findApi, but throws NoDeviceException with the remedy.
const Api& api();

// For tests, while no object of this transport exists. `replacement` is
// borrowed until the next call; null: the system's library again.
void replaceApi(const LoadedApi* replacement);

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
