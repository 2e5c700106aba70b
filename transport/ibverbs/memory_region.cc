#include "transport/ibverbs/memory_region.h"

#include <sys/resource.h>

#include <cerrno>
#include <string>

#include "gloo/common/error.h"
#include "transport/base/socket.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {
namespace {

using base::Rights;

unsigned accessFor(Rights rights) {
  switch (rights) {
    case Rights::kLocal:
      return 0;  // is read only
    case Rights::kLocalWrite:
      return IBV_ACCESS_LOCAL_WRITE;
    case Rights::kRemoteWrite:
      return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    case Rights::kRemoteRead:
      return IBV_ACCESS_REMOTE_READ;
    case Rights::kRemoteBoth:
      break;
  }
  return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
         IBV_ACCESS_REMOTE_READ;
}

std::string remedy(int error) {
  if (error == EFAULT) {
    return " (the memory is not mapped, or may not be written)";
  }
  rlimit limit{};
  if ((error != ENOMEM && error != EAGAIN && error != EPERM) ||
      getrlimit(RLIMIT_MEMLOCK, &limit) != 0) {
    return std::string();
  }
  return limit.rlim_cur == RLIM_INFINITY
             ? " (out of memory, or of the device's regions)"
             : MakeString(" (the limit of locked memory is ",
                          limit.rlim_cur >> 10,
                          " KiB: raise it, ulimit -l unlimited, or in a "
                          "container --ulimit memlock=-1)");
}

}  // namespace

MemoryRegion::MemoryRegion(ibv_pd* pd, void* ptr, size_t bytes, Rights rights)
    : address_(reinterpret_cast<uintptr_t>(ptr)) {
  if (bytes == 0) {
    return;
  }
  mr_.reset(api().regMr(pd, ptr, bytes, accessFor(rights)));
  if (mr_ == nullptr) {
    const int error = errno;
    GLOO_THROW_IO_EXCEPTION(
        "Cannot register ", bytes,
        " bytes with the RDMA device: ", base::errnoText(error), remedy(error));
  }
}

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
