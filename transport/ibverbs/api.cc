#include "transport/ibverbs/api.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "gloo/common/error.h"
#include "gloo/internal/fork.h"
#include "gloo/internal/loader.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {
namespace {

using Hidden = Api::Hidden;

int queryPort(ibv_context* context, uint8_t port, ibv_port_attr* attr) {
  std::memset(attr, 0, sizeof(*attr));
  if (verbs_context* extended = verbs_get_ctx_op(context, query_port)) {
    return extended->query_port(context, port, attr, sizeof(*attr));
  }
  return api().hidden.queryPort(context, port,
                                reinterpret_cast<_compat_ibv_port_attr*>(attr));
}

ssize_t queryGidTable(ibv_context* context, ibv_gid_entry* entries,
                      size_t maxEntries) {
  return api().hidden.queryGidTable(context, entries, maxEntries, 0,
                                    sizeof(*entries));
}

ibv_mr* regMr(ibv_pd* pd, void* address, size_t bytes, unsigned access) {
  return api().hidden.regMrIova2(pd, address, bytes,
                                 reinterpret_cast<uintptr_t>(address), access);
}

class Resolver {
 public:
  explicit Resolver(void* library) : library_(library) {}

  // Versioned symbols: dlsym finds the default version, the one that a program
  // linked today would get.
  template <typename F>
  void optional(F& function, const char* symbol) {
    function = reinterpret_cast<F>(dlsym(library_, symbol));
  }
  template <typename F>
  void required(F& function, const char* symbol) {
    optional(function, symbol);
    if (function == nullptr) {
      missing_ += missing_.empty() ? "" : ", ";
      missing_ += symbol;
    }
  }
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

void resolveDevice(Resolver& from, Api& api, Hidden& hidden) {
  from.optional(api.isForkInitialized, "ibv_is_fork_initialized");
  from.required(api.forkInit, "ibv_fork_init");
  from.required(api.getDeviceList, "ibv_get_device_list");
  from.required(api.freeDeviceList, "ibv_free_device_list");
  from.required(api.getDeviceName, "ibv_get_device_name");
  from.required(api.openDevice, "ibv_open_device");
  from.required(api.closeDevice, "ibv_close_device");
  from.required(api.queryDevice, "ibv_query_device");
  from.required(hidden.queryPort, "ibv_query_port");
  api.queryPort = &queryPort;
  from.required(hidden.queryGidTable, "_ibv_query_gid_table");
  api.queryGidTable = &queryGidTable;
  from.required(api.queryPkey, "ibv_query_pkey");
  from.required(api.getAsyncEvent, "ibv_get_async_event");
  from.required(api.ackAsyncEvent, "ibv_ack_async_event");
  from.required(api.wcStatusStr, "ibv_wc_status_str");
  from.required(api.eventTypeStr, "ibv_event_type_str");
  from.required(api.portStateStr, "ibv_port_state_str");
}

void resolveObjects(Resolver& from, Api& api, Hidden& hidden) {
  from.required(api.allocPd, "ibv_alloc_pd");
  from.required(api.deallocPd, "ibv_dealloc_pd");
  from.required(hidden.regMrIova2, "ibv_reg_mr_iova2");
  api.regMr = &regMr;
  from.optional(api.regDmabufMr, "ibv_reg_dmabuf_mr");
  from.required(api.deregMr, "ibv_dereg_mr");
  from.required(api.createCompChannel, "ibv_create_comp_channel");
  from.required(api.destroyCompChannel, "ibv_destroy_comp_channel");
  from.required(api.createCq, "ibv_create_cq");
  from.required(api.resizeCq, "ibv_resize_cq");
  from.required(api.destroyCq, "ibv_destroy_cq");
  from.required(api.getCqEvent, "ibv_get_cq_event");
  from.required(api.ackCqEvents, "ibv_ack_cq_events");
  from.required(api.createQp, "ibv_create_qp");
  from.required(api.modifyQp, "ibv_modify_qp");
  from.required(api.destroyQp, "ibv_destroy_qp");
}

std::atomic<const LoadedApi*> replaced{nullptr};

const LoadedApi& current() {
  if (const LoadedApi* replacement = replaced.load(std::memory_order_acquire)) {
    return *replacement;
  }
  return internal::madeOnce([] { return loadApi("libibverbs.so.1"); });
}

}  // namespace

LoadedApi loadApi(const char* library) {
  LoadedApi loaded;
  const internal::LoaderLock lock;
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    loaded.error = MakeString(
        "No RDMA device: the verbs library cannot be loaded (", dlerror(),
        "). Install it: apt-get install libibverbs1 "
        "ibverbs-providers, or rdma-core");
    return loaded;
  }
  Api found;
  Resolver resolver(handle);
  resolveDevice(resolver, found, found.hidden);
  resolveObjects(resolver, found, found.hidden);
  if (!resolver.missing().empty()) {
    loaded.error =
        MakeString("No RDMA device: ", library, " is too old, it has no ",
                   resolver.missing(), ". Install rdma-core 32 or later");
    return loaded;
  }
  loaded.api = found;
  return loaded;
}

const Api* findApi() {
  const LoadedApi& loaded = current();
  return loaded.api ? &*loaded.api : nullptr;
}

const Api& api() {
  const LoadedApi& loaded = current();
  if (!loaded.api) {
    throw NoDeviceException(GLOO_ERROR_MSG(loaded.error));
  }
  return *loaded.api;
}

void replaceApi(const LoadedApi* replacement) {
  replaced.store(replacement, std::memory_order_release);
}

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
