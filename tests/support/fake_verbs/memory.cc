// Protection domains and memory regions.
#include <cerrno>

#include "tests/support/cuda_device.h"
#include "tests/support/fake_verbs/fabric.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using Lock = std::lock_guard<std::mutex>;

FakeFabric& fabric() { return FakeFabric::instance(); }

ibv_pd* allocPd(ibv_context* context) {
  Lock lock(fabric().mutex);
  if (const int error = fabric().failureOf(FakeCall::kAllocPd)) {
    errno = error;
    return nullptr;
  }
  auto pd = std::make_unique<FakePd>();
  pd->context = context;
  static_cast<FakeContext*>(context)->children++;
  fabric().alive["pd"]++;
  return pd.release();
}

int deallocPd(ibv_pd* handle) {
  auto* pd = static_cast<FakePd*>(handle);
  Lock lock(fabric().mutex);
  if (pd->children != 0) {
    return fabric().refuseToDestroy(pd);
  }
  static_cast<FakeContext*>(pd->context)->children--;
  fabric().alive["pd"]--;
  fabric().destroy(pd);
  return 0;
}

// REQUIRES the fabric's mutex.
ibv_mr* newRegion(ibv_pd* pd, void* address, size_t bytes, unsigned access) {
  if (const int error = fabric().failureOf(FakeCall::kRegMr)) {
    errno = error;
    return nullptr;
  }
  if (bytes > fabric().config.maxRegionBytes) {
    errno = EINVAL;
    return nullptr;
  }
  const unsigned remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  if ((access & remote) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0) {
    errno = EINVAL;  // ibv_reg_mr(3)
    return nullptr;
  }
  auto mr = std::make_unique<FakeMr>();
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = address;
  mr->length = bytes;
  mr->access = access;
  mr->rkey = mr->handle = fabric().newKey();
  mr->lkey = mr->rkey | kLocalKey;
  static_cast<FakePd*>(pd)->children++;
  fabric().alive["mr"]++;
  fabric().counts.registrations++;
  return fabric().regions.emplace(mr->rkey, std::move(mr)).first->second.get();
}

ibv_mr* regMr(ibv_pd* pd, void* address, size_t bytes, unsigned access) {
  std::unique_lock<std::mutex> lock(fabric().mutex);
  const auto isHeld = [bytes] {
    const size_t from = fabric().heldRegistrations;
    return from != 0 && bytes >= from;
  };
  if (isHeld()) {
    fabric().waitingToRegister++;
    fabric().registering.notify_all();
    fabric().registering.wait(lock, [&] { return !isHeld(); });
    fabric().waitingToRegister--;
  }
  const CudaDevice* const cuda = CudaDevice::current();
  if (cuda != nullptr && !cuda->config().peerMemory &&
      cuda->owns(reinterpret_cast<uint64_t>(address))) {
    errno = EFAULT;
    return nullptr;
  }
  return newRegion(pd, address, bytes, access);
}

ibv_mr* regDmabufMr(ibv_pd* pd, uint64_t offset, size_t bytes, uint64_t iova,
                    int fd, int access) {
  Lock lock(fabric().mutex);
  const CudaDevice* const cuda = CudaDevice::current();
  if (cuda == nullptr || !cuda->config().dmaBufTaken ||
      !cuda->isExported(fd, offset, iova)) {
    errno = cuda != nullptr && !cuda->config().dmaBufTaken ? EOPNOTSUPP : EBADF;
    return nullptr;
  }
  return newRegion(pd, reinterpret_cast<void*>(iova), bytes,
                   static_cast<unsigned>(access));
}

int deregMr(ibv_mr* mr) {
  Lock lock(fabric().mutex);
  static_cast<FakePd*>(mr->pd)->children--;
  fabric().alive["mr"]--;
  fabric().regions.erase(mr->rkey);
  return 0;
}

}  // namespace

void fillMemoryCalls(transport::ibverbs::Api& api) {
  api.allocPd = &allocPd;
  api.deallocPd = &deallocPd;
  api.regMr = &regMr;
  api.regDmabufMr = &regDmabufMr;
  api.deregMr = &deregMr;
}

}  // namespace test
GLOO_NAMESPACE_END
