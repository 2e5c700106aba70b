#include "gloo/common/env.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include "gloo/common/utils.h"

namespace {

using gloo::Environment;

// Sets variables for one test and restores them. Starts from an environment in
// which none of the library's is set.
class Env : public testing::Test {
 protected:
  Env() {
    for (const char* variable :
         {"GLOO_LOG_LEVEL", "GLOO_DISABLE_CONNECTION_RETRIES",
          "GLOO_ENABLE_STORE_V2_API", "GLOO_ENABLE_RANK_AS_SEQUENCE_NUMBER",
          "GLOO_ALGORITHM", "GLOO_SEGMENT_BYTES", "GLOO_TUNING_FILE",
          "GLOO_TCP_SHM", "GLOO_AUTO_LINKS", "GLOO_HOST_ID",
          "GLOO_SHM_SINGLE_COPY", "GLOO_SPIN_US", "GLOO_RANK", "GLOO_SIZE",
          "GLOO_STORE"}) {
      const char* value = std::getenv(variable);
      before_[variable] =
          value == nullptr ? std::optional<std::string>() : std::string(value);
      unsetenv(variable);
    }
  }
  ~Env() override {
    for (const auto& [variable, value] : before_) {
      if (value) {
        setenv(variable.c_str(), value->c_str(), 1);
      } else {
        unsetenv(variable.c_str());
      }
    }
  }

  // What is written to stderr while the environment is read.
  static std::string warningsOf(const char* variable, const char* value) {
    setenv(variable, value, 1);
    testing::internal::CaptureStderr();
    Environment::fromEnvironment();
    return testing::internal::GetCapturedStderr();
  }

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

TEST_F(Env, DefaultsWhenNothingIsSet) {
  const Environment env = Environment::fromEnvironment();
  EXPECT_EQ(env.logLevel, gloo::LogLevel::WARN);
  EXPECT_FALSE(env.disableConnectionRetries);
  EXPECT_TRUE(env.enableStoreV2Api);
  EXPECT_TRUE(env.tcpShm);
  EXPECT_TRUE(env.autoShm);
  EXPECT_TRUE(env.autoIbverbs);
  EXPECT_TRUE(env.shmSingleCopy);
  EXPECT_EQ(env.segmentBytes, 0u);
  EXPECT_TRUE(env.algorithm.empty());
  EXPECT_TRUE(env.tuningFile.empty());
  EXPECT_TRUE(env.store.empty());
  EXPECT_TRUE(env.hostId.empty());
  EXPECT_FALSE(env.spin || env.rank || env.size);
}

TEST_F(Env, EveryVariableIsRead) {
  setenv("GLOO_LOG_LEVEL", "info", 1);
  setenv("GLOO_DISABLE_CONNECTION_RETRIES", "1", 1);
  setenv("GLOO_ENABLE_STORE_V2_API", "False", 1);
  setenv("GLOO_ENABLE_RANK_AS_SEQUENCE_NUMBER", "no", 1);
  setenv("GLOO_ALGORITHM", "allreduce=ring", 1);
  setenv("GLOO_SEGMENT_BYTES", "65536", 1);
  setenv("GLOO_TUNING_FILE", "/tuning.json", 1);
  setenv("GLOO_TCP_SHM", "off", 1);
  setenv("GLOO_AUTO_LINKS", "IBVERBS,tcp", 1);
  setenv("GLOO_SHM_SINGLE_COPY", "0", 1);
  setenv("GLOO_SPIN_US", "50", 1);
  setenv("GLOO_HOST_ID", "left", 1);
  setenv("GLOO_RANK", "0", 1);
  setenv("GLOO_SIZE", "4", 1);
  setenv("GLOO_STORE", "tcp://node0:29500", 1);
  const Environment env = Environment::fromEnvironment();
  EXPECT_EQ(env.logLevel, gloo::LogLevel::INFO);
  EXPECT_TRUE(env.disableConnectionRetries);
  EXPECT_FALSE(env.enableStoreV2Api);
  EXPECT_FALSE(env.enableRankAsSequenceNumber);
  EXPECT_EQ(env.algorithm, "allreduce=ring");
  EXPECT_EQ(env.segmentBytes, 65536u);
  EXPECT_EQ(env.tuningFile, "/tuning.json");
  EXPECT_FALSE(env.tcpShm);
  EXPECT_FALSE(env.autoShm);
  EXPECT_TRUE(env.autoIbverbs);
  EXPECT_FALSE(env.shmSingleCopy);
  EXPECT_EQ(env.spin, std::chrono::microseconds(50));
  EXPECT_EQ(env.hostId, "left");
  EXPECT_EQ(env.rank, 0);
  EXPECT_EQ(env.size, 4);
  EXPECT_EQ(env.store, "tcp://node0:29500");
  EXPECT_TRUE(gloo::disableConnectionRetries());
  EXPECT_FALSE(gloo::isStoreExtendedApiEnabled());
  EXPECT_FALSE(gloo::useRankAsSeqNumber());
}

TEST_F(Env, AnEmptyVariableCountsAsNotSet) {
  EXPECT_EQ(warningsOf("GLOO_RANK", ""), "");
  EXPECT_EQ(Environment::fromEnvironment().rank, std::nullopt);
}

TEST_F(Env, ABadValueIsNamedWithWhatIsAllowedAndIgnored) {
  const std::string text = warningsOf("GLOO_SEGMENT_BYTES", "1MiB");
  EXPECT_NE(text.find("GLOO_SEGMENT_BYTES=1MiB"), std::string::npos) << text;
  EXPECT_NE(text.find("a whole number from 0 to"), std::string::npos) << text;
  EXPECT_EQ(Environment::fromEnvironment().segmentBytes, 0u);

  const std::string boolean = warningsOf("GLOO_TCP_SHM", "perhaps");
  EXPECT_NE(boolean.find("GLOO_TCP_SHM=perhaps"), std::string::npos);
  EXPECT_TRUE(Environment::fromEnvironment().tcpShm);

  const std::string links = warningsOf("GLOO_AUTO_LINKS", "shm,verbs");
  EXPECT_NE(links.find("a list of shm, ibverbs and tcp"), std::string::npos);
  EXPECT_TRUE(Environment::fromEnvironment().autoIbverbs);

  const std::string level = warningsOf("GLOO_LOG_LEVEL", "LOUD");
  EXPECT_NE(level.find("ERROR, WARN, INFO or DEBUG"), std::string::npos);
  EXPECT_EQ(Environment::fromEnvironment().logLevel, gloo::LogLevel::WARN);
}

TEST_F(Env, ABadValueIsWarnedAboutOnce) {
  EXPECT_NE(warningsOf("GLOO_SIZE", "many"), "");
  EXPECT_EQ(warningsOf("GLOO_SIZE", "many"), "");
  EXPECT_NE(warningsOf("GLOO_SIZE", "few"), "");
}

TEST_F(Env, NumbersOutOfRangeAreRefused) {
  for (const char* bad :
       {"-1", "0x10", " 3", "3 ", "2147483648", "99999999999999999999999"}) {
    setenv("GLOO_RANK", bad, 1);
    EXPECT_EQ(Environment::fromEnvironment().rank, std::nullopt) << bad;
  }
  setenv("GLOO_SIZE", "0", 1);
  EXPECT_EQ(Environment::fromEnvironment().size, std::nullopt);
  setenv("GLOO_SPIN_US", "1000001", 1);
  EXPECT_EQ(Environment::fromEnvironment().spin, std::nullopt);
}

// The level is read once, from the environment as it was then.
TEST_F(Env, LogLevelComesFromTheEnvironment) {
  const gloo::LogLevel before = gloo::logLevel();
  setenv("GLOO_LOG_LEVEL", "ERROR", 1);
  gloo::setLogLevel(gloo::LogLevel::UNSET);
  EXPECT_EQ(gloo::logLevel(), gloo::LogLevel::ERROR);
  gloo::setLogLevel(before);
}

TEST_F(Env, TheLogLevelHoldsForWarningsOfTheEnvironment) {
  const gloo::LogLevel before = gloo::logLevel();
  setenv("GLOO_TCP_SHM", "maybe", 1);
  setenv("GLOO_SHM_SINGLE_COPY", "mostly", 1);
  gloo::setLogLevel(gloo::LogLevel::UNSET);
  testing::internal::CaptureStderr();
  setenv("GLOO_LOG_LEVEL", "ERROR", 1);
  EXPECT_EQ(gloo::logLevel(), gloo::LogLevel::ERROR);
  Environment::fromEnvironment();
  gloo::setLogLevel(before);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
