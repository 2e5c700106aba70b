#include "rendezvous/store_url.h"

#include "gloo/common/error.h"
#include "tests/fuzz/target.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

void run(const char* data, size_t bytes) {
  try {
    const auto url = rendezvous::parseStoreUrl({data, bytes});
    require(url.port >= 0 && url.port <= 65535, "ports are ports");
    require(!url.host.empty() || !url.path.empty(), "it names a place");
  } catch (const InvalidOperationException& error) {
    require(std::string(error.what()).find('\n') == std::string::npos,
            "one line");
  }
}

std::vector<char> text(const std::string& url) {
  return {url.begin(), url.end()};
}

const AddFuzzTarget added({"store_url",
                           &run,
                           {text("file:///tmp/job"),
                            text("redis://user:p%40ss@host:6379"),
                            text("redis+unix://:pw@/run/redis.sock"),
                            text("tcp://[fe80::1]:29400")}});

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
