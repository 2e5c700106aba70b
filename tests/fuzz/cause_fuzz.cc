#include "tests/fuzz/target.h"
#include "transport/base/wire.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace transport::base;  // NOLINT

// An abort from a peer.
void run(const char* data, size_t bytes) {
  try {
    const internal::Cause cause = decodeCause({data, bytes});
    require(cause.text.size() <= internal::Cause::kMaxText, "text is short");
    const auto again = encode(cause);
    require(again == std::vector<char>(data, data + bytes), "same bytes");
  } catch (const WireError&) {
  }
}

std::vector<std::vector<char>> seeds() {
  using internal::Cause;
  return {encode(Cause{}),
          encode(Cause{Cause::Kind::kPeerLost, 1, 2, "connection reset"}),
          encode(Cause{Cause::Kind::kClosed, -1, -1, std::string(1024, 120)})};
}

const AddFuzzTarget added({"cause", &run, seeds()});

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
