// Sole owners of libibverbs objects: destroyed once, children first when they
// are declared parent first. In a forked child they command nothing: the kernel
// would destroy the parent's objects.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "gloo/common/logging.h"
#include "gloo/config.h"
#include "transport/base/fork.h"
#include "transport/ibverbs/api.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {

// A failure (EBUSY: a child is still alive) is logged, never thrown.
template <auto Function>
struct Destroyer {
  template <typename T>
  void operator()(T* object) const noexcept {
    (void)destroy(object);
  }
  // False: it still exists.
  template <typename T>
  bool destroy(T* object) const noexcept {
    if (origin.inherited()) {
      return true;
    }
    // Most return an errno value, ibv_close_device -1.
    const int rv = (api().*Function)(object);
    if (rv != 0) {
      GLOO_WARN("libibverbs: ", std::strerror(rv > 0 ? rv : errno));
    }
    return rv == 0;
  }
  base::Origin origin;
};

template <typename T, auto Function>
using Handle = std::unique_ptr<T, Destroyer<Function>>;

using ContextHandle = Handle<ibv_context, &Api::closeDevice>;
using PdHandle = Handle<ibv_pd, &Api::deallocPd>;
using MrHandle = Handle<ibv_mr, &Api::deregMr>;
using ChannelHandle = Handle<ibv_comp_channel, &Api::destroyCompChannel>;
using CqHandle = Handle<ibv_cq, &Api::destroyCq>;
using QpHandle = Handle<ibv_qp, &Api::destroyQp>;

// A descriptor that a verbs object owns: a forked child closes its copy, or
// the kernel would keep the parent's queue pairs after the parent's death.
class ChildClosed {
 public:
  explicit ChildClosed(int fd) : fd_(fd) { base::registerDescriptor(fd_); }
  ~ChildClosed() {
    if (!origin_.inherited()) {
      base::unregisterDescriptor(fd_);
    }
  }
  ChildClosed(const ChildClosed&) = delete;
  ChildClosed& operator=(const ChildClosed&) = delete;

 private:
  const int fd_;
  base::Origin origin_;
};

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
