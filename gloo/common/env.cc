#include "gloo/common/env.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include "gloo/internal/fork.h"

GLOO_NAMESPACE_BEGIN
namespace {

// Null when not set or empty.
const char* lookUp(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr || *value == '\0' ? nullptr : value;
}

// Once per variable and value: the environment is read many times.
void warnOnce(const std::string& variable, const std::string& value,
              const std::string& allowed) {
  struct Warned {
    std::mutex mutex;
    std::set<std::string> texts;
  };
  const std::string text =
      MakeString("ignoring ", variable, "=", value, ": it must be ", allowed);
  {
    auto& warned = internal::instanceOfProcess<Warned>();
    const std::lock_guard<std::mutex> lock(warned.mutex);
    if (!warned.texts.insert(text).second) {
      return;
    }
  }
  GLOO_WARN(text);
}

std::string lowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return text;
}

void read(const char* variable, std::string& result) {
  if (const char* value = lookUp(variable)) {
    result = value;
  }
}

void read(const char* variable, bool& result) {
  const char* value = lookUp(variable);
  if (value == nullptr) {
    return;
  }
  const std::string word = lowerCase(value);
  if (word == "1" || word == "true" || word == "yes" || word == "on") {
    result = true;
  } else if (word == "0" || word == "false" || word == "no" || word == "off") {
    result = false;
  } else {
    warnOnce(variable, value, "1, true, yes, on, 0, false, no or off");
  }
}

// A list of names, each of which switches its flag on; the others are off.
void read(const char* variable, std::map<std::string, bool*> flags) {
  const char* value = lookUp(variable);
  if (value == nullptr) {
    return;
  }
  std::set<std::string> given;
  std::istringstream words(lowerCase(value));
  for (std::string word; std::getline(words, word, ',');) {
    if (flags.find(word) == flags.end()) {
      warnOnce(variable, value, "a list of shm, ibverbs and tcp");
      return;
    }
    given.insert(word);
  }
  for (const auto& [word, flag] : flags) {
    *flag = given.count(word) != 0;
  }
}

void read(const char* variable, LogLevel& result) {
  const char* value = lookUp(variable);
  if (value == nullptr) {
    return;
  }
  const std::string word = lowerCase(value);
  if (word == "error") {
    result = LogLevel::ERROR;
  } else if (word == "warn") {
    result = LogLevel::WARN;
  } else if (word == "info") {
    result = LogLevel::INFO;
  } else if (word == "debug") {
    result = LogLevel::DEBUG;
  } else {
    warnOnce(variable, value, "ERROR, WARN, INFO or DEBUG");
  }
}

// A decimal number from least to most, if the variable holds one.
std::optional<uint64_t> readNumber(const char* variable, uint64_t least,
                                   uint64_t most) {
  const char* value = lookUp(variable);
  if (value == nullptr) {
    return std::nullopt;
  }
  const std::string text = value;
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < least || number > most) {
    warnOnce(variable, text,
             MakeString("a whole number from ", least, " to ", most));
    return std::nullopt;
  }
  return number;
}

}  // namespace

LogLevel log_detail::levelOfEnvironment() {
  LogLevel level = Environment().logLevel;
  read("GLOO_LOG_LEVEL", level);
  return level;
}

Environment Environment::fromEnvironment() {
  constexpr uint64_t kMaxSpinUs = 1000000;
  constexpr uint64_t kMaxInt = std::numeric_limits<int>::max();
  Environment result;
  result.logLevel = log_detail::levelOfEnvironment();
  read("GLOO_DISABLE_CONNECTION_RETRIES", result.disableConnectionRetries);
  read("GLOO_ENABLE_STORE_V2_API", result.enableStoreV2Api);
  read("GLOO_ENABLE_RANK_AS_SEQUENCE_NUMBER",
       result.enableRankAsSequenceNumber);
  read("GLOO_ALGORITHM", result.algorithm);
  read("GLOO_TUNING_FILE", result.tuningFile);
  read("GLOO_TCP_SHM", result.tcpShm);
  bool tcp = true;
  read("GLOO_AUTO_LINKS", {{"shm", &result.autoShm},
                           {"ibverbs", &result.autoIbverbs},
                           {"tcp", &tcp}});
  read("GLOO_SHM_SINGLE_COPY", result.shmSingleCopy);
  read("GLOO_HOST_ID", result.hostId);
  read("GLOO_STORE", result.store);
  result.segmentBytes =
      readNumber("GLOO_SEGMENT_BYTES", 0, uint64_t{1} << 40).value_or(0);
  if (const auto spin = readNumber("GLOO_SPIN_US", 0, kMaxSpinUs)) {
    result.spin = std::chrono::microseconds(*spin);
  }
  if (const auto rank = readNumber("GLOO_RANK", 0, kMaxInt)) {
    result.rank = static_cast<int>(*rank);
  }
  if (const auto size = readNumber("GLOO_SIZE", 1, kMaxInt)) {
    result.size = static_cast<int>(*size);
  }
  return result;
}

GLOO_NAMESPACE_END
