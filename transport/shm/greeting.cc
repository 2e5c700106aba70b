#include "transport/shm/greeting.h"

#include <algorithm>

#include "gloo/common/error.h"
#include "transport/base/topology.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {
namespace {

constexpr uint64_t kVersion = 5;  // also of what lies in lanes
constexpr size_t kBytes = 7 * 8 + 4 * sizeof(Secret);

void put(std::vector<char>& out, uint64_t value) {
  for (int i = 0; i < 8; i++) {
    out.push_back(static_cast<char>(value >> (8 * i)));
  }
}

void put(std::vector<char>& out, const Secret& value) {
  out.insert(out.end(), value.begin(), value.end());
}

void get(const char*& at, uint64_t& value) {
  value = 0;
  for (int i = 0; i < 8; i++) {
    value |= uint64_t{static_cast<uint8_t>(*at++)} << (8 * i);
  }
}

void get(const char*& at, Secret& value) {
  std::copy_n(at, value.size(), value.begin());
  at += value.size();
}

}  // namespace

std::vector<char> encode(const Greeting& g) {
  std::vector<char> out;
  put(out, kVersion);
  put(out, g.endpoint);
  put(out, g.token);
  put(out, g.segment);
  put(out, g.probeAddress);
  put(out, g.probe);
  put(out, g.hostId);
  put(out, g.eagerBytes);
  put(out, g.creditBytes);
  put(out, g.maxFrameBytes);
  put(out, static_cast<uint32_t>(g.home));
  return out;
}

Greeting decodeGreeting(const std::vector<char>& bytes) {
  Greeting g;
  const char* at = bytes.data();
  uint64_t version = 0;
  if (bytes.size() >= kBytes) {  // a later version may add some
    get(at, version);
  }
  if (version != kVersion) {
    GLOO_THROW_IO_EXCEPTION("The peer's hello of ", bytes.size(),
                            " bytes is not for a shared-memory link");
  }
  get(at, g.endpoint);
  get(at, g.token);
  get(at, g.segment);
  get(at, g.probeAddress);
  get(at, g.probe);
  get(at, g.hostId);
  get(at, g.eagerBytes);
  get(at, g.creditBytes);
  get(at, g.maxFrameBytes);
  uint64_t home = 0;
  get(at, home);
  g.home = static_cast<int32_t>(home);
  if (g.home != base::Topology::kUnknown && !base::Topology::mayBe(g.home)) {
    GLOO_THROW_IO_EXCEPTION("The peer's hello names NUMA node ", g.home,
                            ": it runs another program or is broken");
  }
  return g;
}

base::LinkCaps agreeLimits(const base::LinkCaps& mine, const Greeting& theirs) {
  base::LinkCaps caps = mine;
  caps.eagerBytes = std::min<uint64_t>(mine.eagerBytes, theirs.eagerBytes);
  caps.smallBytes = std::min(mine.smallBytes, caps.eagerBytes);
  caps.creditBytes = std::min<uint64_t>(mine.creditBytes, theirs.creditBytes);
  caps.maxFrameBytes =
      std::min<uint64_t>(mine.maxFrameBytes, theirs.maxFrameBytes);
  if (caps.creditBytes < caps.eagerBytes ||
      caps.creditBytes < caps.creditQuantum || caps.maxFrameBytes == 0) {
    GLOO_THROW_IO_EXCEPTION(
        "The peer's hello has impossible limits for a shared-memory link: it"
        " runs another program or is broken");
  }
  return caps;
}

}  // namespace transport::shm
GLOO_NAMESPACE_END
