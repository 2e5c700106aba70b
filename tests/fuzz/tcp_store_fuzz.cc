#include "gloo/rendezvous/tcp_store.h"
#include "rendezvous/tcp_store_wire.h"
#include "tests/fuzz/target.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace rendezvous;  // NOLINT

// A frame, as the server takes it from a connection.
void run(const char* data, size_t bytes) {
  if (bytes < tcpstore::kHeaderBytes) {
    return;
  }
  const auto header =
      tcpstore::decodeHeader({data, bytes}, TcpStoreServer::kMaxRequestBytes);
  if (!header) {
    return;
  }
  require(header->bodyBytes <= TcpStoreServer::kMaxRequestBytes, "bounded");
  const std::span<const char> body(data + tcpstore::kHeaderBytes,
                                   bytes - tcpstore::kHeaderBytes);
  std::string why;
  const auto request = tcpstore::decodeRequest(header->op, body, &why);
  require(request.has_value() || !why.empty(), "a refusal has a reason");
  if (request) {
    require(tcpstore::encodeRequest(*request) ==
                std::vector<char>(body.begin(), body.end()),
            "same bytes");
  }
}

std::vector<std::vector<char>> seeds() {
  std::vector<std::vector<char>> all;
  for (uint8_t op = 1; op <= 5; op++) {
    tcpstore::Request request;
    request.op = static_cast<tcpstore::Op>(op);
    request.keys = {"gloo.rank.1"};
    request.values = {{'v', 'a', 'l', 'u', 'e'}};
    all.push_back(
        tcpstore::encodeFrame(op, 9, tcpstore::encodeRequest(request)));
  }
  return all;
}

const AddFuzzTarget added({"tcp_store", &run, seeds()});

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
