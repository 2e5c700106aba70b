#include "benchmarks/benchmark/options.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace benchmark {
namespace {

Options parse(const std::string& line) {
  std::vector<std::string> words{"benchmark"};
  std::istringstream in(line);
  for (std::string word; in >> word;) {
    words.push_back(word);
  }
  std::vector<const char*> argv;
  for (const auto& word : words) {
    argv.push_back(word.c_str());
  }
  return parseOptions(int(argv.size()), argv.data());
}

struct BadLine {
  const char* line;
  const char* says;  // part of the message
};

// The test's name: without it the address of the text, new in every run.
void PrintTo(const BadLine& bad, std::ostream* out) {
  *out << '\'' << bad.line << '\'';
}

class BadCommandLine : public testing::TestWithParam<BadLine> {};

TEST_P(BadCommandLine, IsRefusedInOneLineThatNamesTheFault) {
  const auto& [line, says] = GetParam();
  try {
    parse(line);
    FAIL() << "accepted: " << line;
  } catch (const UsageError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find(says), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, BadCommandLine,
    testing::Values(
        BadLine{"", "NAME"}, BadLine{"--ranks 2", "NAME"},
        BadLine{"--ranks 2 nothing", "there is no benchmark 'nothing'"},
        BadLine{"--ranks 0 allreduce", "--ranks: 0"},
        BadLine{"--ranks 2 --json /nowhere/report allreduce", "/nowhere"},
        BadLine{"allreduce", "--size"}, BadLine{"-s 2 allreduce", "--rank"},
        BadLine{"-s 2 -r 0 allreduce", "no store"},
        BadLine{"-s 2 -r 2 --shared-path /x allreduce", "--rank: 2"},
        BadLine{"-s 2 -r -1 --shared-path /x allreduce", "--rank"},
        BadLine{"-s 0 -r 0 --shared-path /x allreduce", "--size"},
        BadLine{"-s two -r 0 --shared-path /x allreduce", "two"},
        BadLine{"-s 2 -r 0 --shared-path /x -h localhost allreduce",
                "two stores"},
        BadLine{"-s 2 -r 0 --shared-path /x --store tcp://h:1 allreduce",
                "two stores"},
        BadLine{"--ranks 2 --store tcp://h:1 allreduce", "--store"},
        BadLine{"-s 2 -r 0 -h localhost -p 70000 allreduce", "--port"},
        BadLine{"--ranks -3 allreduce", "--ranks"},
        BadLine{"--ranks 2 -s 2 allreduce", "--size"},
        BadLine{"--ranks 2 -r 1 allreduce", "--rank"},
        BadLine{"--ranks 2 --shared-path /x allreduce", "--shared-path"},
        BadLine{"--ranks 2 -t pigeon allreduce", "no such transport"},
        BadLine{"--ranks 2 -t tls allreduce", "not in this build"},
        BadLine{"--ranks 2 --all-algorithms --tune x", "--tune"},
        BadLine{"--ranks 2 --tune x barrier", "no algorithms to compare"},
        BadLine{"--ranks 1 --all-algorithms", "one rank"},
        BadLine{"--ranks 2 --tune x --elements 5", "--elements"},
        BadLine{"--ranks 2 --tune x --json y", "--json"},
        BadLine{"--ranks 2 --tune=", "--tune"},
        BadLine{"--ranks 2 --all-algorithms --nanos", "--nanos"},
        BadLine{"--ranks 2 --tune x --largest 3", "--largest"},
        BadLine{"--all-algorithms allreduce", "--size"},
        BadLine{"--ranks 2 -t tcp --ib-device mlx5_0 allreduce", "--ib-device"},
        BadLine{"--ranks 2 -t shm --ib-eager-bytes 4096 allreduce",
                "--ib-eager-bytes"},
        BadLine{"--ranks 2 -t shm --tcp-device lo allreduce", "--tcp-device"},
        BadLine{"--ranks 2 -t tcp --ib-port 1 allreduce", "--ib-port needs -t"},
        BadLine{"--ranks 2 -t shm --ib-index 0 allreduce",
                "--ib-index needs -t"},
        BadLine{"--ranks 2 --tcp-device lo,eth0 allreduce",
                "--tcp-device: 2 devices, but each thread uses one: name "
                "fewer, or give --threads"},
        BadLine{"--ranks 2 --tcp-device lo,eth0 --tune x", "name fewer"},
        BadLine{"--ranks 2 --largest 4096 allreduce", "--largest goes with"},
        BadLine{"--ranks 2 --warmup-iters 5 --tune x", "--warmup-iters"},
        BadLine{"--ranks 2 --warmup-iters 5 --all-algorithms",
                "--warmup-iters"},
        BadLine{"--ranks 2 --messages 5 allreduce",
                "--messages is an option of isendirecv_stress, "
                "sendrecv_stress: leave it out"},
        BadLine{"--ranks 2 --messages 5 --all-algorithms", "--messages"},
        BadLine{"--ranks 2 --destinations 1 sendrecv_stress",
                "--destinations is an option of pairwise_exchange"},
        BadLine{"--ranks 2 --base 4 new_allreduce_ring", "--base"},
        BadLine{"--ranks 2 --base 4 --all-algorithms broadcast", "--base"},
        BadLine{"--ranks 2 --base 4 no_such", "there is no benchmark"},
        BadLine{"--ranks 8 --elements 7 new_reduce_scatter",
                "cuts them into 8 equal parts: give at least as many"},
        BadLine{"--ranks 8 --elements 2 --destinations 3 pairwise_exchange",
                "into 3 equal parts"},
        BadLine{"--ranks 2 --gpudirect allreduce",
                "are the host's; what moves a CUDA device's: docs/ibverbs.md"},
        BadLine{"--ranks 2 --elements 0 allreduce", "--elements"},
        BadLine{"--ranks 2 --elements -1 allreduce", "--elements"},
        BadLine{"--ranks 2 --elements 1e99 allreduce", "--elements"},
        BadLine{"--ranks 2 --elements 2147483648 allreduce_ring",
                "at most 2147483647: its class counts elements"},
        BadLine{"--ranks 2 --elements 2147483648 allreduce_local",
                "at most 2147483647"},
        BadLine{"--ranks 2 --elements 2147483648 allgather_ring",
                "at most 2147483647"},
        BadLine{"--ranks 2 --elements 2147483648 reduce_scatter",
                "at most 2147483647"},
        BadLine{"--ranks 2 --elements 536870912 pairwise_exchange",
                "at most 536870911: its class counts bytes"},
        BadLine{"--ranks 2 --halfprecision --elements 1073741824 "
                "pairwise_exchange",
                "at most 1073741823"},
        BadLine{"--ranks 3 --inputs 86 --halfprecision allreduce",
                "the sum of 256 vectors exactly, not that of 258"},
        BadLine{"--ranks 3 --inputs 86 --halfprecision allreduce_ring",
                "--halfprecision"},
        BadLine{"-s 257 -r 0 --shared-path /x --halfprecision reduce",
                "not that of 257"},
        BadLine{"-s 65536 -r 0 --shared-path /x --inputs 2 allreduce",
                "float32 holds the sum of 74235"},
        BadLine{"--ranks 2 --inputs 0 allreduce", "--inputs"},
        BadLine{"--ranks 2 --inputs 2 broadcast", "--inputs"},
        BadLine{"--ranks 2 --threads 0 allreduce", "--threads"},
        BadLine{"--ranks 2 --base 1 allreduce", "--base"},
        BadLine{"--ranks 2 --warmup-iters -1 allreduce", "--warmup-iters"},
        BadLine{"--ranks 2 --iteration-count 0 allreduce", "--iteration-count"},
        BadLine{"--ranks 2 --iteration-count 5 --iteration-time 1s allreduce",
                "either"},
        BadLine{"--ranks 2 --iteration-time 5 allreduce", "'5'"},
        BadLine{"--ranks 2 --iteration-time fast allreduce", "'fast'"},
        BadLine{"--ranks 2 --iteration-time -1s allreduce", "-1s"},
        BadLine{"--ranks 2 --iteration-time 1e300s allreduce", "1e300s"},
        BadLine{"--ranks 2 --messages 0 sendrecv_stress", "--messages"},
        BadLine{"--ranks 1 sendrecv_roundtrip", "at least 2 ranks"},
        BadLine{"--ranks 3 pairwise_exchange", "cannot be paired"},
        BadLine{"--ranks 6 --destinations 2 pairwise_exchange",
                "cannot be paired"},
        BadLine{"--ranks 2 --sync maybe allreduce", "maybe"},
        BadLine{"--ranks 2 --unknown allreduce", "--unknown"},
        BadLine{"--ranks 2 allreduce broadcast", "broadcast"}));

TEST(CommandLine, TakesEveryOptionOfTheOriginal) {
  const Options options = parse(
      "-s 4 -r 3 -h host -p 6380 -x run7 -t tcp --sync true --busy-poll 1 "
      "--tcp-device eth0,eth1 --no-verify --show-all-errors --inputs 2 "
      "--elements 1000 --warmup-iters 7 --iteration-count 9 --threads 3 "
      "--nanos --halfprecision --base 4 allreduce");
  EXPECT_EQ(options.size, 4);
  EXPECT_EQ(options.rank, 3);
  EXPECT_EQ(options.redisHost, "host");
  EXPECT_EQ(options.redisPort, 6380);
  EXPECT_EQ(options.prefix, "run7");
  EXPECT_TRUE(options.sync);
  EXPECT_TRUE(options.busyPoll);
  EXPECT_EQ(options.tcpDevices, (std::vector<std::string>{"eth0", "eth1"}));
  EXPECT_FALSE(options.verify);
  EXPECT_TRUE(options.showAllErrors);
  EXPECT_EQ(options.inputs, 2);
  EXPECT_EQ(options.elements, 1000u);
  EXPECT_EQ(options.warmupIterations, 7);
  EXPECT_EQ(options.iterationCount, 9u);
  EXPECT_EQ(options.threads, 3);
  EXPECT_TRUE(options.nanos);
  EXPECT_TRUE(options.halfPrecision);
  EXPECT_EQ(options.base, 4);
  EXPECT_EQ(options.name, "allreduce");
}

TEST(CommandLine, TakesAsMuchAsCanBeCountedAndChecked) {
  for (const char* line :
       {"--ranks 2 --elements 2147483647 allreduce_ring",
        "--ranks 2 --elements 2147483648 allreduce",
        "--ranks 2 --elements 536870911 pairwise_exchange",
        "--ranks 2 --inputs 128 --halfprecision allreduce",
        "--ranks 3 --inputs 86 --halfprecision --no-verify allreduce",
        "--ranks 3 --inputs 86 --halfprecision allreduce_local",
        "--ranks 8 --elements 8 new_reduce_scatter",
        "--ranks 2 --messages 5 isendirecv_stress",
        "--ranks 2 --base 4 --all-algorithms",
        "--ranks 2 --threads 2 --tcp-device lo,eth0 allreduce",
        "-s 257 -r 0 --shared-path /x --halfprecision broadcast"}) {
    EXPECT_NO_THROW(parse(line)) << line;
  }
}

TEST(CommandLine, BusyPollingIsSynchronous) {
  EXPECT_TRUE(parse("--ranks 2 --busy-poll true allreduce").sync);
}

TEST(CommandLine, HelpListsEveryBenchmarkOfTheOriginal) {
  try {
    parse("--help");
    FAIL() << "no help";
  } catch (const HelpRequest& help) {
    for (const char* name : {"allgather",
                             "allgather_v",
                             "allgather_ring",
                             "allreduce_ring",
                             "allreduce_ring_chunked",
                             "allreduce_halving_doubling",
                             "allreduce_bcube",
                             "allreduce_local",
                             "new_allreduce_ring",
                             "alltoall",
                             "alltoall_v",
                             "barrier_all_to_all",
                             "barrier_all_to_one",
                             "broadcast",
                             "broadcast_one_to_all",
                             "pairwise_exchange",
                             "reduce",
                             "reduce_scatter",
                             "scatter",
                             "sendrecv_roundtrip",
                             "sendrecv_stress",
                             "isendirecv_stress"}) {
      EXPECT_NE(help.text.find("\n  " + std::string(name) + " "),
                std::string::npos)
          << name;
    }
  }
}

TEST(CommandLine, DurationsHaveUnits) {
  using namespace std::chrono_literals;
  EXPECT_EQ(parseDuration("2s"), 2s);
  EXPECT_EQ(parseDuration("500ms"), 500ms);
  EXPECT_EQ(parseDuration("0.5s"), 500ms);
  EXPECT_EQ(parseDuration("10us"), 10us);
  EXPECT_EQ(parseDuration("1m"), 1min);
}

}  // namespace
}  // namespace benchmark
