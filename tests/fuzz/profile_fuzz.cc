#include "gloo/common/error.h"
#include "gloo/internal/profile.h"
#include "tests/fuzz/target.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using internal::Profile;

void run(const char* data, size_t bytes) {
  const std::vector<char> in(data, data + bytes);
  try {
    require(Profile::deserialize(in).serialize() == in, "same bytes");
  } catch (const RendezvousException&) {
  }
}

std::vector<std::vector<char>> seeds() {
  Profile profile;
  profile.forced = "allreduce=ring";
  profile.segmentBytes = 4096;
  profile.tuning = "table";
  return {Profile().serialize(), profile.serialize()};
}

const AddFuzzTarget added({"profile", &run, seeds()});

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
