#include "tests/fuzz/target.h"
#include "transport/base/wire.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace transport::base;  // NOLINT

// What a peer says of a disagreement.
void run(const char* data, size_t bytes) {
  try {
    const Dispute dispute = decodeDispute({data, bytes});
    const auto again = encode(dispute);
    require(again == std::vector<char>(data, data + bytes), "same bytes");
    require(!internal::describeDisagreement(dispute.said, {1, dispute.yours},
                                            dispute.details.get(),
                                            dispute.details.get())
                 .empty(),
            "described");
  } catch (const WireError&) {
  }
}

std::vector<std::vector<char>> seeds() {
  internal::CheckDetails details;
  details.counts.assign(internal::CheckDetails::kMostCounts, 5);
  const auto with = std::make_shared<internal::CheckDetails>(details);
  return {encode(Dispute{}),
          encode(Dispute{7, {2, 0x0102030405060708}, 9, with})};
}

const AddFuzzTarget added({"dispute", &run, seeds()});

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
