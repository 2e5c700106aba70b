#include "gloo/common/logging.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <new>

#include "gloo/common/env.h"

GLOO_NAMESPACE_BEGIN
namespace {

std::atomic<LogLevel> currentLevel{LogLevel::UNSET};

// While this lives, the thread reads the environment for the level.
class Reading {
 public:
  Reading() { now_ = true; }
  ~Reading() { now_ = false; }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  static bool now() { return now_; }

 private:
  static thread_local bool now_;
};
thread_local bool Reading::now_ = false;

const char* levelName(LogLevel level) {
  switch (level) {
    case LogLevel::ERROR:
      return "ERROR";
    case LogLevel::WARN:
      return "WARN";
    case LogLevel::INFO:
      return "INFO";
    default:
      return "DEBUG";
  }
}

const char* baseName(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

std::string enforceText(const char* file, int line, const char* condition,
                        const std::string& message) {
  return MakeString("[enforce fail at ", baseName(file), ":", line, "] ",
                    condition, message.empty() ? "" : ". ", message);
}

}  // namespace

LogLevel logLevel() {
  // Relaxed: the level guards no other data.
  LogLevel level = currentLevel.load(std::memory_order_relaxed);
  if (level != LogLevel::UNSET) {
    return level;
  }
  if (Reading::now()) {
    return LogLevel::WARN;  // what is read is being warned about
  }
  try {
    const Reading reading;
    const LogLevel wanted = log_detail::levelOfEnvironment();
    // What another thread has set meanwhile stays.
    return currentLevel.compare_exchange_strong(level, wanted,
                                                std::memory_order_relaxed)
               ? wanted
               : level;
  } catch (const std::bad_alloc&) {
    // Whoever logs may be handling just that: the next message looks again.
    return LogLevel::WARN;
  }
}

void setLogLevel(LogLevel level) {
  currentLevel.store(level, std::memory_order_relaxed);
}

namespace log_detail {

void write(LogLevel level, const char* file, int line,
           const std::string& text) noexcept {
  try {
    const std::string message =
        MakeString("[gloo] ", levelName(level), " ", baseName(file), ":", line,
                   ": ", text, "\n");
    std::fwrite(message.data(), 1, message.size(), stderr);
  } catch (...) {
    // No memory for the message: a log line is not worth an abort.
  }
}

}  // namespace log_detail

EnforceNotMet::EnforceNotMet(const char* file, int line, const char* condition,
                             const std::string& message)
    : InvalidOperationException(enforceText(file, line, condition, message)),
      messages_{MakeString("[enforce fail at ", baseName(file), ":", line, "] ",
                           condition)} {
  if (!message.empty()) {
    messages_.push_back(message);
  }
}

EnforceNotMet::~EnforceNotMet() = default;

std::string EnforceNotMet::msg() const { return what(); }

namespace enforce_detail {

void fail(const char* file, int line, const char* condition,
          const std::string& values, const std::string& message) {
  const char* separator = values.empty() || message.empty() ? "" : ". ";
  throw EnforceNotMet(file, line, condition,
                      MakeString(values, separator, message));
}

}  // namespace enforce_detail
GLOO_NAMESPACE_END
