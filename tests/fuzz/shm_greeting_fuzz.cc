#include "gloo/common/error.h"
#include "tests/fuzz/target.h"
#include "transport/shm/greeting.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace transport::shm;  // NOLINT

void run(const char* data, size_t bytes) {
  transport::base::LinkCaps mine;
  mine.eagerBytes = 1000;
  mine.creditBytes = 8000;
  mine.creditQuantum = 64;
  mine.maxFrameBytes = 5000;
  try {
    const Greeting greeting = decodeGreeting({data, data + bytes});
    const auto caps = agreeLimits(mine, greeting);
    require(caps.eagerBytes <= caps.creditBytes && caps.creditBytes <= 8000 &&
                caps.maxFrameBytes > 0 && caps.maxFrameBytes <= 5000,
            "limits of both");
    require(encode(greeting).size() <= bytes, "a greeting of known fields");
  } catch (const IoException&) {
  }
}

std::vector<char> seed() {
  Greeting greeting;
  greeting.token.fill('t');
  greeting.probeAddress = 0x7f0012345678;
  greeting.eagerBytes = 900;
  greeting.creditBytes = 7000;
  greeting.maxFrameBytes = 4000;
  return encode(greeting);
}

const AddFuzzTarget added({"shm_greeting", &run, {seed()}});

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
