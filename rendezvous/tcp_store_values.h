// What the TCP store's server keeps: keys and their values, with a limit.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous::tcpstore {

// For one thread.
class Values {
 public:
  bool has(const std::string& key) const { return find(key) != nullptr; }

  // Empty where there is none; until the next set().
  const std::vector<char>& at(const std::string& key) const;

  // Both throw IoException where more would be stored than kMaxStoredBytes,
  // keys and kEntryBytes for each included; what was there stays.
  void set(const std::string& key, std::vector<char> value);
  void append(const std::string& key, std::span<const char> value);

  // The answer of a peek: of each key whether it is there, and its value.
  // Throws IoException where that is longer than kMaxAnswerBytes: all that is
  // stored fits into an answer; a key that is named again and again may not.
  std::vector<char> peek(const std::vector<std::string>& keys) const;

 private:
  const std::vector<char>* find(const std::string& key) const;
  size_t roomFor(const std::string& key, size_t bytes) const;

  std::unordered_map<std::string, std::vector<char>> values_;
  size_t bytes_ = 0;
};

}  // namespace rendezvous::tcpstore
GLOO_NAMESPACE_END
