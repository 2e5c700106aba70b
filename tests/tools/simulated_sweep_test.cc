// What the options of a sweep do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/gloo_simulate/sweep.h"

namespace gloo_simulate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Swept {
  std::vector<Row> rows;
  std::vector<std::string> notes;
};

Swept swept(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "gloo_simulate");
  const Options options =
      parseOptions(static_cast<int>(arguments.size()), arguments.data());
  Swept swept;
  swept.rows = sweep(
      options, [&](const std::string& note) { swept.notes.push_back(note); },
      [](const std::string&) {});
  return swept;
}

TEST(SimulatedSweep, SegmentsAreAsLongAsIsAskedFor) {
  for (const auto& [text, bytes] : {std::pair("64K", size_t{64} << 10),
                                    std::pair("16M", size_t{16} << 20)}) {
    const Swept one = swept({"-c", "allreduce", "-a", "recursive_doubling",
                             "-n", "4", "-s", "64M", "--segment", text});
    ASSERT_EQ(1u, one.rows.size());
    EXPECT_EQ(bytes, one.rows[0].segmentBytes);
    EXPECT_EQ(4u * 2 * ((size_t{64} << 20) / bytes), one.rows[0].messages);
  }
}

// A ring of 16 over 2048 segments: 30 / 16 of them are sent by each rank, as
// many received, and 15 / 16 reduced.
TEST(SimulatedSweep, ActionsAreSendsReceivesAndReductions) {
  static_assert(16 * (30 + 30 + 15) * 2048 / 16 == 153600);
  const auto of = [](const char* most) {
    return swept({"-c", "allreduce", "-a", "ring", "-n", "16", "-s", "8M",
                  "--segment", "4K", "--most-actions", most});
  };
  EXPECT_EQ(1u, of("0.1537").rows.size());
  const Swept tooMany = of("0.1535");
  EXPECT_EQ(0u, tooMany.rows.size());
  EXPECT_THAT(tooMany.notes,
              ElementsAre(HasSubstr("ring is left out for 16 ranks and 8388608 "
                                    "bytes: more than 0.1535 million actions "
                                    "(--most-actions)")));
}

}  // namespace
}  // namespace gloo_simulate
