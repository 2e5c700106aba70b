#include <infiniband/verbs.h>

#include "gloo/common/error.h"
#include "tests/fuzz/target.h"
#include "transport/ibverbs/qp_address.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace transport::ibverbs;  // NOLINT

// What is accepted is an address that a device can have, and survives a round
// trip. (Padding, and what a later version appends, does not.)
void run(const char* data, size_t bytes) {
  try {
    const QpAddress address = decodeQpAddress({data, data + bytes});
    require(bytes >= QpAddress::kBytes, "nothing is cut off");
    require(address.qpn != 0 && address.qpn < 1 << 24, "24 bits");
    require(address.psn < 1 << 24, "24 bits");
    require(address.mtu >= IBV_MTU_256 && address.mtu <= IBV_MTU_4096,
            "an MTU that exists");
    require(address.receives > 0, "the peer can be sent to");
    require(!address.str().empty(), "it can be named");
    const auto once = encode(address);
    require(once.size() == QpAddress::kBytes, "a fixed length");
    require(encode(decodeQpAddress(once)) == once, "same bytes");
  } catch (const IoException&) {
  }
}

std::vector<std::vector<char>> seeds() {
  QpAddress infiniband;
  infiniband.lid = 17;
  infiniband.mtu = IBV_MTU_4096;
  infiniband.qpn = 0x11;
  infiniband.psn = 0xabcdef;
  infiniband.receives = 64;
  infiniband.eagerBytes = 16384;
  infiniband.readsAtATime = 4;
  infiniband.creditBytes = 8 << 20;
  infiniband.maxMessage = 1 << 30;
  QpAddress roce = infiniband;
  roce.lid = 0;
  roce.global = true;
  roce.gidType = transport::ibverbs::GidType::kRoce2;
  roce.gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
  auto later = encode(roce);
  later.resize(later.size() + 8, 7);
  return {encode(infiniband), encode(roce), later};
}

const AddFuzzTarget added({"qp_address", &run, seeds()});

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
