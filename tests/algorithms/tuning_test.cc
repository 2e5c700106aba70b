#include "algorithms/tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "algorithms/selection.h"
#include "gloo/common/error.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

using internal::Profile;
using testing::HasSubstr;

// One network of a file; `more`: further members.
std::string network(const std::string& transport, int ranks,
                    const std::string& more = "") {
  return R"({"transport": ")" + transport + R"(", "ranks": )" +
         std::to_string(ranks) +
         R"(, "latency": 1e-5, "overhead": 1e-6, "gap": 2e-6,
            "gap_per_byte": 1e-9, "reduce_per_byte": 1e-10,
            "copy_per_byte": 2e-10, "segment_bytes": 50000)" +
         more + "}";
}

std::string file(const std::string& networks) {
  return R"({"version": 1, "networks": [)" + networks + "]}";
}

constexpr const char* kTable = R"(, "best": {
  "allreduce": [{"bytes": 0, "algorithm": "flat"},
                {"bytes": 1000, "algorithm": "ring"},
                {"bytes": 2000, "algorithm": "halving_doubling"}],
  "reduce_scatter": [{"bytes": 64, "algorithm": "recursive_halving"}],
  "allgather": [{"bytes": 0, "algorithm": "neighbour_exchange"}]})";

Choice choose(const std::string& text, int size, size_t bytes,
              Collective collective = Collective::kAllreduce,
              const char* forced = nullptr) {
  Profile profile;
  profile.tuning = text;
  return Selection(profile, size, "tcp")
      .choose(collective, {0, size}, bytes, forced, 1 << 20);
}

std::string nameOfChoice(const std::string& text, int size, size_t bytes,
                         Collective collective = Collective::kAllreduce) {
  return std::string(choose(text, size, bytes, collective).algorithm->name);
}

TEST(Tuning, ATableDecidesFromEachRowsBytesOn) {
  const std::string text = file(network("tcp", 4, kTable));
  EXPECT_EQ("flat", nameOfChoice(text, 4, 0));
  EXPECT_EQ("flat", nameOfChoice(text, 4, 999));
  EXPECT_EQ("ring", nameOfChoice(text, 4, 1000));
  EXPECT_EQ("ring", nameOfChoice(text, 4, 1999));
  EXPECT_EQ("halving_doubling", nameOfChoice(text, 4, 2000));
  EXPECT_EQ("halving_doubling", nameOfChoice(text, 4, size_t{1} << 40));
}

TEST(Tuning, AWishGoesBeforeATable) {
  const std::string text = file(network("tcp", 4, kTable));
  EXPECT_EQ(
      "bcube",
      choose(text, 4, 0, Collective::kAllreduce, "bcube").algorithm->name);
}

TEST(Tuning, BelowATablesFirstRowTheModelDecides) {
  const std::string text = file(network("tcp", 4, kTable));
  EXPECT_EQ("recursive_halving",
            nameOfChoice(text, 4, 64, Collective::kReduceScatter));
  EXPECT_EQ("pairwise", nameOfChoice(text, 4, 63, Collective::kReduceScatter));
}

TEST(Tuning, TheFormsWithDifferentCountsUseTheTableOfTheOther) {
  const std::string text = file(network("tcp", 4, kTable));
  EXPECT_EQ("recursive_halving",
            nameOfChoice(text, 4, 64, Collective::kReduceScatterv));
  EXPECT_EQ("neighbour_exchange",
            nameOfChoice(text, 4, 64, Collective::kAllgatherv));
}

TEST(Tuning, WhatATableNamesMustWorkForTheSize) {
  // There is no neighbour exchange of 3 ranks.
  const std::string text = file(network("tcp", 3, kTable));
  EXPECT_NE("neighbour_exchange",
            nameOfChoice(text, 3, 64, Collective::kAllgather));
}

Tuning applied(const std::string& text, const std::string& transport,
               int size) {
  Tuning tuning = shippedTuning(transport, size, true);
  applyTuningFile(text, transport, size, tuning);
  return tuning;
}

TEST(Tuning, ParametersAreThoseOfTheTransport) {
  const std::string text = file(network("shm", 4, kTable));
  const Tuning tuning = applied(text, "shm", 4);
  EXPECT_EQ(1e-5, tuning.network.inside.latency);
  EXPECT_EQ(1e-6, tuning.network.inside.overhead);
  EXPECT_EQ(2e-6, tuning.network.inside.gap);
  EXPECT_EQ(1e-9, tuning.network.inside.gapPerByte);
  EXPECT_EQ(1e-10, tuning.network.reducePerByte);
  EXPECT_EQ(2e-10, tuning.network.copyPerByte);
  EXPECT_EQ(50000u, tuning.segmentBytes);
  EXPECT_EQ(3u + 2u, tuning.best.size());
  const Tuning other = applied(text, "tcp", 4);
  EXPECT_EQ(shippedTuning("tcp", 4, true).network.inside.latency,
            other.network.inside.latency);
  EXPECT_TRUE(other.best.empty());
}

TEST(Tuning, ParametersOfTheNearestNumberOfRanksButNoTable) {
  std::string far = network("tcp", 32, kTable);
  far.replace(far.find("1e-5"), 4, "9e-5");
  const std::string text = file(network("tcp", 4, kTable) + "," + far);
  EXPECT_EQ(1e-5, applied(text, "tcp", 8).network.inside.latency);
  EXPECT_EQ(9e-5, applied(text, "tcp", 20).network.inside.latency);
  EXPECT_TRUE(applied(text, "tcp", 8).best.empty());
}

// Whose logarithms differ in the last bit, some in one direction and some in
// the other.
TEST(Tuning, OfTwoThatAreAsNearTheFirstInTheFile) {
  for (int low = 1; low < 12; low++) {
    for (int factor = 2; factor < 12; factor++) {
      for (int more = 1; more < factor; more++) {
        // low * more^2 : low * more * factor : low * factor^2
        const std::string a = network("tcp", low * more * more);
        std::string b = network("tcp", low * factor * factor);
        b.replace(b.find("1e-5"), 4, "9e-5");
        const int size = low * more * factor;
        EXPECT_EQ(
            1e-5,
            applied(file(a + "," + b), "tcp", size).network.inside.latency)
            << low * more * more << ", " << size;
        EXPECT_EQ(
            9e-5,
            applied(file(b + "," + a), "tcp", size).network.inside.latency)
            << low * more * more << ", " << size;
      }
    }
  }
}

// ---- Collectives in memory that all ranks have mapped. ----

constexpr const char* kDirect = R"(, "direct": {
  "flat_bytes": 1000, "rooted_bytes": 1500, "crowded_rooted_bytes": 1600,
  "halved_bytes": 2000, "in_place_bytes": 3000, "read_bytes": 3500,
  "chunk_bytes": 40000, "most_bytes": {"broadcast": 5000}})";

TEST(Tuning, ChoosesTheWaysOfDirectCollectives) {
  const DirectParameters direct =
      applied(file(network("shm", 4, kDirect)), "shm", 4).direct;
  EXPECT_EQ((DirectParameters::ByCores{1000, 1000}), direct.flatBytes);
  EXPECT_EQ((DirectParameters::ByCores{1500, 1600}), direct.rootedBytes);
  EXPECT_EQ(2000u, direct.halvedBytes);
  EXPECT_EQ(3000u, direct.inPlaceBytes);
  EXPECT_EQ(3500u, direct.readBytes);
  EXPECT_EQ(40000u, direct.chunkBytes);
  EXPECT_EQ(5000u, direct.mostOf(Collective::kBroadcast));
  EXPECT_EQ(DirectParameters::kUnlimited,
            direct.mostOf(Collective::kAllreduce));
}

void expectShipped(const DirectParameters& direct, int ranks) {
  const DirectParameters shipped = shippedDirectParameters(ranks);
  EXPECT_EQ(shipped.flatBytes, direct.flatBytes);
  EXPECT_EQ(shipped.rootedBytes, direct.rootedBytes);
  EXPECT_EQ(shipped.halvedBytes, direct.halvedBytes);
  EXPECT_EQ(shipped.inPlaceBytes, direct.inPlaceBytes);
  EXPECT_EQ(shipped.readBytes, direct.readBytes);
  EXPECT_EQ(shipped.chunkBytes, direct.chunkBytes);
  EXPECT_EQ(shipped.mostBytes, direct.mostBytes);
}

TEST(Tuning, DirectWaysAreOfThisTransportAndNumberOfRanks) {
  const std::string text = file(network("shm", 4, kDirect));
  expectShipped(applied(text, "shm", 8).direct, 8);
  expectShipped(applied(text, "auto", 4).direct, 4);
}

// Of files that were written before there were such members, too.
TEST(Tuning, WhatAFileDoesNotSayOfDirectWaysIsAsShipped) {
  expectShipped(applied(file(network("shm", 4)), "shm", 4).direct, 4);
  const DirectParameters some =
      applied(file(network("shm", 4, R"(, "direct": {"chunk_bytes": 9000})")),
              "shm", 4)
          .direct;
  EXPECT_EQ(9000u, some.chunkBytes);
  EXPECT_EQ(shippedDirectParameters(4).flatBytes, some.flatBytes);
}

TEST(Tuning, EveryTransportHasParameters) {
  for (const char* transport : {"tcp", "shm", "ibverbs", "auto", ""}) {
    for (const bool oneHost : {false, true}) {
      const Tuning tuning = shippedTuning(transport, 8, oneHost);
      for (const LinkParameters& link :
           {tuning.network.between, tuning.network.inside}) {
        EXPECT_GT(link.latency, 0);
        EXPECT_GT(link.gapPerByte, 0);
      }
      EXPECT_GT(tuning.network.reducePerByte, 0);
      EXPECT_GT(tuning.segmentBytes, 0u);
    }
  }
}

// ---- Files that make no sense. ----

std::string errorOf(const std::string& text) {
  try {
    applied(text, "tcp", 4);
  } catch (const InvalidOperationException& e) {
    return e.what();
  }
  return "accepted";
}

TEST(TuningFile, WhatIsWrongIsNamedWithItsPlace) {
  const auto best = [](const std::string& tables) {
    return file(network("tcp", 2, ", \"best\": {" + tables + "}"));
  };
  const auto direct = [](const std::string& members) {
    return file(network("tcp", 2, ", \"direct\": " + members));
  };
  const std::pair<std::string, const char*> cases[] = {
      {direct("[]"), "networks[0].direct: expected an object"},
      {direct(R"({"fat_bytes": 1})"), "fat_bytes"},
      {direct(R"({"flat_bytes": -1})"), "networks[0].direct.flat_bytes"},
      {direct(R"({"flat_bytes": "1"})"), "flat_bytes"},
      {direct(R"({"halved_bytes": 1e16})"), "halved_bytes"},
      {direct(R"({"in_place_bytes": 127})"), "in_place_bytes"},
      {direct(R"({"read_bytes": 127})"), "read_bytes"},
      {direct(R"({"chunk_bytes": 8191})"), "chunk_bytes"},
      {direct(R"({"most_bytes": 1})"), "most_bytes"},
      {direct(R"({"most_bytes": {"alreduce": 1}})"), "alreduce"},
      {direct(R"({"most_bytes": {"gather": 1}})"), "most_bytes.gather"},
      {direct(R"({"most_bytes": {"reduce": null}})"), "most_bytes.reduce"},
      {"alpha 5e-6", "no JSON"},
      {"{", "no JSON"},
      {std::string("\0", 1), "no JSON"},
      {"null", "expected an object"},
      {"[]", "expected an object"},
      {"{}", "version"},
      {R"({"version": 2, "networks": []})", "version"},
      {R"({"version": "1", "networks": []})", "version"},
      {R"({"version": 1})", "networks"},
      {R"({"version": 1, "networks": {}})", "networks"},
      {R"({"version": 1, "networks": [], "more": 1})", "more"},
      {file("1"), "networks[0]"},
      {file(network("tcp", 4) + ",[]"), "networks[1]"},
      {file(network("tcp", 4) + "," + network("tcp", 4)), "a second one"},
      {file(network("tcp", 0)), "networks[0].ranks"},
      {file(network("tcp", 2, ", \"latency\": -1")), "latency"},
      {file(network("tcp", 2, ", \"latency\": \"1\"")), "latency"},
      {file(network("tcp", 2, ", \"latency\": 1e300")), "latency"},
      {file(network("tcp", 2, ", \"latency\": 1e400")), "no JSON"},
      {file(network("tcp", 2, ", \"segment_bytes\": 0")), "segment_bytes"},
      {file(network("tcp", 2, ", \"segment_bytes\": 4095")),
       "segment_bytes: expected a number from 4096 to 1000000000000000, "
       "found 4095"},
      {file(network("tcp", 2000000)), "from 1 to 1048576, found 2000000"},
      {file(network("tcp", 2, ", \"speed\": 1")), "speed"},
      {file(R"({"transport": 1})"), "transport"},
      {file(network("TCP", 2)), "networks[0].transport: expected tcp, shm"},
      {file(network("verbs", 2)), "found \"verbs\""},
      {file(network("", 2)), "networks[0].transport"},
      {file(network("tcp", 4, ", \"ranks\": 4.5")),
       "networks[0].ranks: expected a whole number, found 4.5"},
      {file(network("tcp", 2, ", \"segment_bytes\": 0.5")), "segment_bytes"},
      {file(network("tcp", 2, ", \"segment_bytes\": 9000.5")),
       "segment_bytes: expected a whole number"},
      {direct(R"({"flat_bytes": 0.5})"), "flat_bytes: expected a whole"},
      {direct(R"({"most_bytes": {"reduce": 1.5}})"),
       "most_bytes.reduce: expected a whole"},
      {best(R"("allreduce": [{"bytes": 1.5, "algorithm": "ring"}])"),
       "bytes: expected a whole"},
      {file(network("tcp", 2, ", \"best\": []")), "best"},
      {best(R"("allruduce": [])"), "allruduce"},
      {best(R"("allruduce": [])"), "there are allreduce, broadcast, barrier"},
      {best(R"("allreduce": {})"), "best.allreduce"},
      {best(R"("allreduce": [1])"), "best.allreduce"},
      {best(R"("allreduce": [{"bytes": 0}])"), "algorithm"},
      {best(R"("allreduce": [{"algorithm": "ring"}])"), "bytes"},
      {best(R"("allreduce": [{"bytes": -1, "algorithm": "ring"}])"), "bytes"},
      {best(R"("allreduce": [{"bytes": 0, "algorithm": "rong"}])"), "rong"},
      {best(R"("allreduce": [{"bytes": 5, "algorithm": "ring"},
                             {"bytes": 5, "algorithm": "flat"}])"),
       "ascend"},
  };
  for (const auto& [text, part] : cases) {
    EXPECT_THAT(errorOf(text), HasSubstr("GLOO_TUNING_FILE: ")) << text;
    EXPECT_THAT(errorOf(text), HasSubstr(part)) << text;
  }
}

TEST(TuningFile, NamesTheTransportsThatThereAre) {
  for (const char* const name : {"tcp", "shm", "ibverbs", "auto"}) {
    EXPECT_EQ("accepted", errorOf(file(network(name, 2)))) << name;
  }
}

TEST(TuningFile, DeepNestingAndWildBytesAreErrorsOnly) {
  EXPECT_THAT(errorOf(std::string(60000, '[')), HasSubstr("deep"));
  std::string nested(30000, '[');
  nested += std::string(30000, ']');
  EXPECT_THAT(errorOf(nested), HasSubstr("deep"));
  EXPECT_THAT(errorOf("{\"" + std::string(50000, 'x') + "\": 1}"),
              HasSubstr("unknown member"));
  EXPECT_LT(errorOf("{\"" + std::string(50000, 'x') + "\": 1}").size(), 200u);
  const std::string longName = "\"" + std::string(50000, 'x') + "\"";
  const std::string unknown =
      errorOf(file(network("tcp", 2, ", \"best\": {" + longName + ": []}")));
  EXPECT_THAT(unknown, HasSubstr("no collective 'xxx"));
  EXPECT_LT(unknown.size(), 500u);
  EXPECT_THAT(errorOf("{\"\xff\xfe\": 1}"), HasSubstr("no JSON"));
}

}  // namespace
}  // namespace algorithms
GLOO_NAMESPACE_END
