#include "algorithms/tuning.h"
#include "gloo/common/error.h"
#include "tests/fuzz/target.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

void run(const char* data, size_t bytes) {
  constexpr int kRanks = 4;
  algorithms::Tuning tuning = algorithms::shippedTuning("tcp", kRanks, true);
  try {
    algorithms::applyTuningFile(std::string(data, bytes), "tcp", kRanks,
                                tuning);
    require(tuning.segmentBytes > 0, "a segment length");
    require(tuning.network.inside.latency >= 0, "a latency");
    require(
        tuning.direct.chunkBytes >= algorithms::DirectParameters::kLeastChunk &&
            tuning.direct.inPlaceBytes >=
                algorithms::DirectParameters::kLeastInPlace &&
            tuning.direct.readBytes >=
                algorithms::DirectParameters::kLeastInPlace,
        "sizes that direct collectives can have");
  } catch (const InvalidOperationException&) {
  }
}

std::vector<std::vector<char>> seeds() {
  const std::string text = R"({"version":1,"networks":[{"transport":"tcp",
    "ranks":4,"latency":1e-5,"overhead":1e-6,"gap":2e-6,"gap_per_byte":1e-9,
    "reduce_per_byte":1e-10,"copy_per_byte":2e-10,"segment_bytes":50000,
    "best":{"allreduce":[{"bytes":0,"algorithm":"flat"},
                         {"bytes":1000,"algorithm":"ring"}]},
    "direct":{"flat_bytes":1000,"rooted_bytes":1500,"halved_bytes":2000,
              "in_place_bytes":3000,"read_bytes":4000,
              "crowded_flat_bytes":900,
              "chunk_bytes":40000,"most_bytes":{"alltoall":5000}}}]})";
  return {{text.begin(), text.end()}, {'{', '}'}};
}

const AddFuzzTarget added({"tuning", &run, seeds()});

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
