#include "transport/ibverbs/memory_region.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "gloo/common/error.h"
#include "gloo/internal/cuda.h"
#include "transport/base/memory.h"
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

std::string remedy(ibv_pd* pd, size_t bytes, int error) {
  ibv_device_attr device{};
  if (api().queryDevice(pd->context, &device) == 0 && device.max_mr_size > 0 &&
      bytes > device.max_mr_size) {
    return MakeString(" (the device takes ", device.max_mr_size,
                      " bytes at a time: divide the buffer)");
  }
  switch (error) {
    case EFAULT:
      return " (the memory is not mapped, or may not be written)";
    case EINVAL:  // ibv_fork_init has libibverbs do madvise for small pages
      return " (in hugepages, on a kernel that does not copy locked memory at "
             "a fork? Then set RDMAV_HUGEPAGES_SAFE=1 in the environment)";
    case ENOMEM:
    case EAGAIN:
    case EPERM: {
      const std::string limit = lockedMemoryLimit();
      return limit.empty() ? " (out of memory, or of the device's regions)"
                           : " (" + limit + ")";
    }
    default:
      return std::string();
  }
}

// Null, and why.
MrHandle registerDmaBuf(ibv_pd* pd, void* ptr, size_t bytes, Rights rights,
                        int device, std::string* why) {
  if (api().regDmabufMr == nullptr) {
    *why = "libibverbs takes no dma-buf: rdma-core 34 or later does";
    return nullptr;
  }
  internal::DmaBuf buffer;
  *why = internal::exportCuda(device, ptr, bytes, &buffer);
  if (!why->empty()) {
    return nullptr;
  }
  MrHandle mr(api().regDmabufMr(pd, buffer.offset, bytes,
                                reinterpret_cast<uintptr_t>(ptr), buffer.fd,
                                static_cast<int>(accessFor(rights))));
  const int error = errno;
  ::close(buffer.fd);
  if (mr == nullptr) {
    *why = "the RDMA device takes no dma-buf: " + base::errnoText(error);
  }
  return mr;
}

MrHandle registerCuda(ibv_pd* pd, void* ptr, size_t bytes, Rights rights,
                      const base::MemoryKind& kind) {
  std::string why;
  MrHandle mr = registerDmaBuf(pd, ptr, bytes, rights, kind.device, &why);
  if (mr == nullptr) {
    mr.reset(api().regMr(pd, ptr, bytes, accessFor(rights)));
  }
  if (mr == nullptr) {
    const int error = errno;
    GLOO_THROW_INVALID_OPERATION_EXCEPTION(
        "The RDMA device cannot reach ", kind.str(), ": no dma-buf (", why,
        "), and no peer memory (", base::errnoText(error),
        "; is the kernel module nvidia_peermem loaded?). Or copy it to host "
        "memory first");
  }
  return mr;
}

}  // namespace

std::string lockedMemoryLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY) {
    return std::string();
  }
  return MakeString("the limit of locked memory is ", limit.rlim_cur >> 10,
                    " KiB: raise it, ulimit -l unlimited, or in a container "
                    "--ulimit memlock=-1");
}

MemoryRegion::MemoryRegion(ibv_pd* pd, void* ptr, size_t bytes, Rights rights,
                           const base::MemoryKind& kind)
    : address_(reinterpret_cast<uintptr_t>(ptr)),
      isHosts_(kind.where != base::MemoryKind::Where::kCuda) {
  if (bytes == 0) {
    return;
  }
  if (!isHosts_) {
    mr_ = registerCuda(pd, ptr, bytes, rights, kind);
    return;
  }
  base::requireUnmanaged(ptr);
  mr_.reset(api().regMr(pd, ptr, bytes, accessFor(rights)));
  if (mr_ == nullptr) {
    const int error = errno;
    GLOO_THROW_IO_EXCEPTION("Cannot register ", bytes,
                            " bytes with the RDMA device: ",
                            base::errnoText(error), remedy(pd, bytes, error));
  }
}

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
