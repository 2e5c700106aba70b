#include "rendezvous/record.h"

#include "tests/fuzz/target.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using rendezvous::Record;

void run(const char* data, size_t bytes) {
  std::string why;
  const auto record = rendezvous::decodeRecord({data, bytes}, &why);
  require(record.has_value() || !why.empty(), "a refusal has a reason");
  if (record) {
    require(rendezvous::encodeRecord(*record) ==
                std::vector<char>(data, data + bytes),
            "same bytes");
  }
}

std::vector<std::vector<char>> seeds() {
  Record address;
  address.rank = 1;
  address.size = 2;
  address.nonce = 0x0123456789abcdef;
  address.address.assign(100, 'a');
  address.extra.assign(20, 'p');
  Record refusal;
  refusal.kind = Record::Kind::kRefusal;
  refusal.rank = 0;
  refusal.size = 1;
  refusal.extra.assign(40, 'w');
  return {rendezvous::encodeRecord(address), rendezvous::encodeRecord(refusal)};
}

const AddFuzzTarget added({"record", &run, seeds()});

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
