#include "gloo/common/error.h"
#include "tests/fuzz/target.h"
#include "transport/auto/offer.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace transport::automatic;  // NOLINT

void run(const char* data, size_t bytes) {
  try {
    const std::vector<char> in(data, data + bytes);
    require(encode(decodeOffers(in)) == in, "the same offers");
  } catch (const IoException&) {
  }
}

std::vector<char> seed() {
  return encode({{"shm", std::vector<char>(104, 's')},
                 {"ibverbs", std::vector<char>(56, 'v')},
                 {"tcp", std::vector<char>(24, 't')}});
}

const AddFuzzTarget added({"auto_offer", &run, {seed()}});

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
