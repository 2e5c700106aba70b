// Messages to stderr, and checks that throw. Thread-safe: a message is one
// line, written at once.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "gloo/common/error.h"
#include "gloo/common/string.h"
#include "gloo/config.h"

// Programs are compiled with -DDEBUG; the names below are Gloo's all the same.
#pragma push_macro("ERROR")
#pragma push_macro("DEBUG")
#undef ERROR
#undef DEBUG

GLOO_NAMESPACE_BEGIN

// A message is written when its level is at most logLevel().
enum LogLevel { UNSET = 0, ERROR = 1, WARN = 2, INFO = 3, DEBUG = 4 };

namespace log_detail {
constexpr LogLevel kError = LogLevel::ERROR;
constexpr LogLevel kWarn = LogLevel::WARN;
constexpr LogLevel kInfo = LogLevel::INFO;
constexpr LogLevel kDebug = LogLevel::DEBUG;

GLOO_API void write(LogLevel level, const char* file, int line,
                    const std::string& text) noexcept;

// Without memory for the text nothing is written.
template <typename... Args>
void print(LogLevel level, const char* file, int line,
           const Args&... args) noexcept {
  try {
    write(level, file, line, MakeString(args...));
  } catch (...) {
    // A log line is not worth an abort.
  }
}
}  // namespace log_detail

#pragma pop_macro("DEBUG")
#pragma pop_macro("ERROR")

// GLOO_LOG_LEVEL (ERROR, WARN, INFO or DEBUG; default WARN) as it was at the
// first call, or what setLogLevel was last given.
GLOO_API LogLevel logLevel();
// UNSET: read the environment again.
GLOO_API void setLogLevel(LogLevel level);

// A precondition that was checked with GLOO_ENFORCE does not hold.
class GLOO_API EnforceNotMet : public InvalidOperationException {
 public:
  EnforceNotMet(const char* file, int line, const char* condition,
                const std::string& message);
  ~EnforceNotMet() override;

  // The whole text, and its parts: where and which condition, then why.
  std::string msg() const;
  const std::vector<std::string>& msg_stack() const { return messages_; }

 private:
  std::vector<std::string> messages_;
};

namespace enforce_detail {

// Outcome of a condition, with the operands' values when it does not hold.
struct Outcome {
  bool holds;
  std::string text;
};

inline Outcome outcome(Outcome result) { return result; }
template <typename T>
Outcome outcome(const T& condition) {
  return {static_cast<bool>(condition), std::string()};
}

template <typename T1, typename T2>
Outcome compared(bool holds, const T1& x, const char* relation, const T2& y) {
  return {holds, holds ? std::string()
                       : MakeString(x, " ", relation, " ", y, " is false")};
}

template <typename T1, typename T2>
Outcome Equals(const T1& x, const T2& y) {
  return compared(x == y, x, "==", y);
}
template <typename T1, typename T2>
Outcome NotEquals(const T1& x, const T2& y) {
  return compared(x != y, x, "!=", y);
}
template <typename T1, typename T2>
Outcome Less(const T1& x, const T2& y) {
  return compared(x < y, x, "<", y);
}
template <typename T1, typename T2>
Outcome LessEquals(const T1& x, const T2& y) {
  return compared(x <= y, x, "<=", y);
}
template <typename T1, typename T2>
Outcome Greater(const T1& x, const T2& y) {
  return compared(x > y, x, ">", y);
}
template <typename T1, typename T2>
Outcome GreaterEquals(const T1& x, const T2& y) {
  return compared(x >= y, x, ">=", y);
}

[[noreturn]] GLOO_API void fail(const char* file, int line,
                                const char* condition,
                                const std::string& values,
                                const std::string& message);

}  // namespace enforce_detail
GLOO_NAMESPACE_END

#define GLOO_LOG_AT(level, ...)                                            \
  do {                                                                     \
    if (::gloo::logLevel() >= (level)) {                                   \
      ::gloo::log_detail::print((level), __FILE__, __LINE__, __VA_ARGS__); \
    }                                                                      \
  } while (0)
#define GLOO_ERROR(...) GLOO_LOG_AT(::gloo::log_detail::kError, __VA_ARGS__)
#define GLOO_WARN(...) GLOO_LOG_AT(::gloo::log_detail::kWarn, __VA_ARGS__)
#define GLOO_INFO(...) GLOO_LOG_AT(::gloo::log_detail::kInfo, __VA_ARGS__)
#define GLOO_DEBUG(...) GLOO_LOG_AT(::gloo::log_detail::kDebug, __VA_ARGS__)

// Throw EnforceNotMet unless the condition holds; what follows the condition
// is the message. The comparisons add both values.
#define GLOO_ENFORCE_IMPL(condition, words, ...)                         \
  do {                                                                   \
    using namespace ::gloo::enforce_detail; /* for Equals and its kin */ \
    const auto glooOutcome = ::gloo::enforce_detail::outcome(condition); \
    if (!glooOutcome.holds) {                                            \
      ::gloo::enforce_detail::fail(__FILE__, __LINE__, words,            \
                                   glooOutcome.text,                     \
                                   ::gloo::MakeString(__VA_ARGS__));     \
    }                                                                    \
  } while (0)
#define GLOO_ENFORCE(condition, ...)                                 \
  do {                                                               \
    if (!(condition)) {                                              \
      ::gloo::enforce_detail::fail(__FILE__, __LINE__, #condition,   \
                                   std::string(),                    \
                                   ::gloo::MakeString(__VA_ARGS__)); \
    }                                                                \
  } while (0)
#define GLOO_ENFORCE_THAT(condition, ...) \
  GLOO_ENFORCE_IMPL((condition), #condition, __VA_ARGS__)
#define GLOO_ENFORCE_EQ(x, y, ...) \
  GLOO_ENFORCE_IMPL(Equals((x), (y)), #x " == " #y, __VA_ARGS__)
#define GLOO_ENFORCE_NE(x, y, ...) \
  GLOO_ENFORCE_IMPL(NotEquals((x), (y)), #x " != " #y, __VA_ARGS__)
#define GLOO_ENFORCE_LT(x, y, ...) \
  GLOO_ENFORCE_IMPL(Less((x), (y)), #x " < " #y, __VA_ARGS__)
#define GLOO_ENFORCE_LE(x, y, ...) \
  GLOO_ENFORCE_IMPL(LessEquals((x), (y)), #x " <= " #y, __VA_ARGS__)
#define GLOO_ENFORCE_GT(x, y, ...) \
  GLOO_ENFORCE_IMPL(Greater((x), (y)), #x " > " #y, __VA_ARGS__)
#define GLOO_ENFORCE_GE(x, y, ...) \
  GLOO_ENFORCE_IMPL(GreaterEquals((x), (y)), #x " >= " #y, __VA_ARGS__)
