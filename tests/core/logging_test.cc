#include "gloo/common/logging.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "gloo/common/string.h"

namespace {

// The level is the process's: put back after each test.
class Logging : public testing::Test {
 protected:
  ~Logging() override { gloo::setLogLevel(before_); }

  // What all four levels write when the level is `level`.
  static std::string writtenAt(gloo::LogLevel level) {
    gloo::setLogLevel(level);
    testing::internal::CaptureStderr();
    GLOO_ERROR("message ", 1);
    GLOO_WARN("message ", 2);
    GLOO_INFO("message ", 3);
    GLOO_DEBUG("message ", 4);
    return testing::internal::GetCapturedStderr();
  }

 private:
  const gloo::LogLevel before_ = gloo::logLevel();
};

TEST_F(Logging, WritesOneLinePerMessageUpToTheLevel) {
  const std::string text = writtenAt(gloo::LogLevel::WARN);
  EXPECT_NE(text.find("ERROR logging_test.cc:"), std::string::npos) << text;
  EXPECT_NE(text.find(": message 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find(": message 2\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("message 3"), std::string::npos) << text;
  EXPECT_EQ(text.find("message 4"), std::string::npos) << text;
}

TEST_F(Logging, DebugWritesEverythingErrorOnlyErrors) {
  EXPECT_NE(writtenAt(gloo::LogLevel::DEBUG).find("message 4"),
            std::string::npos);
  EXPECT_EQ(writtenAt(gloo::LogLevel::ERROR).find("message 2"),
            std::string::npos);
}

// The thread that reads the environment is stopped in a warning of it.
TEST_F(Logging, ALevelThatIsSetWhileAnotherThreadReadsItStays) {
  const char* const variable = "GLOO_LOG_LEVEL";
  const char* const found = std::getenv(variable);
  const std::string before = found != nullptr ? found : "";
  setenv(variable, "WHISPERED", 1);
  int warnings = 0;
  cookie_io_functions_t calls{};
  calls.write = [](void* to, const char*, size_t bytes) {
    ++*static_cast<int*>(to);
    std::thread([] { gloo::setLogLevel(gloo::LogLevel::DEBUG); }).join();
    return static_cast<ssize_t>(bytes);
  };
  FILE* const usual = stderr;
  gloo::setLogLevel(gloo::LogLevel::UNSET);
  stderr = fopencookie(&warnings, "w", calls);
  setvbuf(stderr, nullptr, _IONBF, 0);
  const gloo::LogLevel first = gloo::logLevel();
  fclose(stderr);
  stderr = usual;
  setenv(variable, before.c_str(), 1);
  EXPECT_GE(warnings, 1);
  EXPECT_EQ(first, gloo::LogLevel::DEBUG);
  EXPECT_EQ(gloo::logLevel(), gloo::LogLevel::DEBUG);
}

TEST_F(Logging, ArgumentsOfASilentMessageAreNotEvaluated) {
  gloo::setLogLevel(gloo::LogLevel::WARN);
  int evaluated = 0;
  GLOO_DEBUG(++evaluated);
  EXPECT_EQ(evaluated, 0);
}

TEST(MakeString, PrintsTheElementsOfVectors) {
  const std::vector<std::string> keys = {"a", "b"};
  const std::vector<std::vector<int>> rows = {{1, 2}, {3}};
  EXPECT_EQ(gloo::MakeString(keys), "a b");
  EXPECT_EQ(gloo::MakeString("keys ", keys, "; rows ", rows, '.'),
            "keys a b; rows 1 2 3.");
  EXPECT_EQ(gloo::MakeString(std::vector<bool>{true, false}), "1 0");
  EXPECT_EQ(gloo::MakeString(std::vector<int>()), "");
}

TEST(Enforce, DoesNothingWhenTheConditionHolds) {
  EXPECT_NO_THROW({
    GLOO_ENFORCE(true);
    GLOO_ENFORCE(1 == 1, "never seen");
    GLOO_ENFORCE_EQ(1, 1);
    GLOO_ENFORCE_NE(1, 2);
    GLOO_ENFORCE_LT(1, 2, "never seen");
    GLOO_ENFORCE_LE(2, 2);
    GLOO_ENFORCE_GT(2, 1);
    GLOO_ENFORCE_GE(2, 2);
    GLOO_ENFORCE_THAT(Equals(1, 1));
  });
}

TEST(Enforce, EachComparisonThrowsWhenItDoesNotHold) {
  EXPECT_THROW(GLOO_ENFORCE_EQ(1, 2), gloo::EnforceNotMet);
  EXPECT_THROW(GLOO_ENFORCE_NE(1, 1), gloo::EnforceNotMet);
  EXPECT_THROW(GLOO_ENFORCE_LT(2, 2), gloo::EnforceNotMet);
  EXPECT_THROW(GLOO_ENFORCE_LE(2, 1), gloo::EnforceNotMet);
  EXPECT_THROW(GLOO_ENFORCE_GT(1, 1), gloo::EnforceNotMet);
  EXPECT_THROW(GLOO_ENFORCE_GE(1, 2), gloo::EnforceNotMet);
  EXPECT_THROW(GLOO_ENFORCE_THAT(Less(2, 1)), gloo::EnforceNotMet);
}

TEST(Enforce, TextHasPlaceConditionValuesAndMessage) {
  const int offset = 12;
  try {
    GLOO_ENFORCE_LE(offset, 8, "offset ", offset, " is past the end");
    FAIL() << "nothing was thrown";
  } catch (const gloo::EnforceNotMet& e) {
    const std::string text = e.msg();
    EXPECT_NE(text.find("logging_test.cc:"), std::string::npos) << text;
    EXPECT_NE(text.find("offset <= 8"), std::string::npos) << text;
    EXPECT_NE(text.find("12 <= 8 is false"), std::string::npos) << text;
    EXPECT_NE(text.find("offset 12 is past the end"), std::string::npos);
    EXPECT_EQ(text, e.what());
    ASSERT_EQ(e.msg_stack().size(), 2u);
  }
}

TEST(Enforce, IsACallersFaultAndAStandardException) {
  EXPECT_THROW(GLOO_ENFORCE(false), gloo::InvalidOperationException);
  EXPECT_THROW(GLOO_ENFORCE(false), gloo::Exception);
  EXPECT_THROW(GLOO_ENFORCE(false), std::exception);
}

TEST(Enforce, EvaluatesItsOperandsOnce) {
  int evaluated = 0;
  GLOO_ENFORCE_EQ(++evaluated, 1);
  GLOO_ENFORCE(++evaluated == 2);
  EXPECT_EQ(evaluated, 2);
}

}  // namespace
