#include "tests/support/fake_wire.h"

#include <algorithm>
#include <cstring>

GLOO_NAMESPACE_BEGIN
namespace test {

using transport::base::RemoteMemory;
using transport::base::Rights;

FakeHub& FakeHub::instance() {
  static FakeHub hub;
  return hub;
}

uint64_t FakeHub::newId() {
  std::lock_guard<std::mutex> guard(mutex_);
  return ++ids_;
}

std::shared_ptr<FakeWire> FakeHub::wire(uint64_t a, uint64_t b) {
  std::lock_guard<std::mutex> guard(mutex_);
  auto& weak = wires_[{std::min(a, b), std::max(a, b)}];
  auto wire = weak.lock();
  if (wire == nullptr) {
    wire = std::make_shared<FakeWire>();
    weak = wire;
  }
  return wire;
}

uint32_t FakeHub::add(char* ptr, size_t bytes, Rights rights) {
  std::lock_guard<std::mutex> guard(mutex_);
  memory_[++keys_] = {ptr, bytes, rights};
  return keys_;
}

void FakeHub::remove(uint32_t key) {
  std::lock_guard<std::mutex> guard(mutex_);
  memory_.erase(key);
}

bool FakeHub::copy(RemoteMemory remote, char* local, size_t bytes, bool write) {
  std::lock_guard<std::mutex> guard(mutex_);
  const auto found = memory_.find(remote.key);
  if (found == memory_.end()) {
    return false;
  }
  const Memory& memory = found->second;
  const uint64_t offset = remote.address - addressOf(remote.key);
  const Rights wanted = write ? Rights::kRemoteWrite : Rights::kRemoteRead;
  if (offset > memory.bytes || bytes > memory.bytes - offset ||
      (memory.rights != wanted && memory.rights != Rights::kRemoteBoth)) {
    return false;
  }
  if (bytes > 0) {
    char* there = memory.ptr + offset;
    std::memcpy(write ? there : local, write ? local : there, bytes);
  }
  return true;
}

}  // namespace test
GLOO_NAMESPACE_END
