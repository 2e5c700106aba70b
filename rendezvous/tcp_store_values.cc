#include "rendezvous/tcp_store_values.h"

#include <utility>

#include "gloo/common/error.h"
#include "rendezvous/bytes.h"
#include "rendezvous/tcp_store_wire.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous::tcpstore {

namespace {

const std::vector<char> kNone;

}  // namespace

const std::vector<char>* Values::find(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

const std::vector<char>& Values::at(const std::string& key) const {
  const auto* value = find(key);
  return value == nullptr ? kNone : *value;
}

// The bytes of everything when this key has a value of that many.
size_t Values::roomFor(const std::string& key, size_t bytes) const {
  const size_t entry = TcpStoreServer::kEntryBytes + key.size();
  const auto* old = find(key);
  const size_t before = old == nullptr ? 0 : entry + old->size();
  const size_t after = bytes_ - before + entry + bytes;
  if (after > TcpStoreServer::kMaxStoredBytes) {
    throw IoException(MakeString("the store is full: it holds at most ",
                                 TcpStoreServer::kMaxStoredBytes,
                                 " bytes, and ", TcpStoreServer::kEntryBytes,
                                 " of them go to each key"));
  }
  return after;
}

void Values::set(const std::string& key, std::vector<char> value) {
  const size_t after = roomFor(key, value.size());
  values_[key] = std::move(value);
  bytes_ = after;
}

void Values::append(const std::string& key, std::span<const char> value) {
  const size_t after = roomFor(key, at(key).size() + value.size());
  auto& stored = values_[key];
  stored.insert(stored.end(), value.begin(), value.end());
  bytes_ = after;
}

std::vector<char> Values::peek(const std::vector<std::string>& keys) const {
  std::vector<const std::vector<char>*> found;
  found.reserve(keys.size());
  size_t bytes = 0;
  for (const auto& key : keys) {
    found.push_back(find(key));
    bytes += 5 + (found.back() == nullptr ? 0 : found.back()->size());
  }
  if (bytes > kMaxAnswerBytes) {
    throw IoException("the values are too long for one answer");
  }
  std::vector<char> body;
  body.reserve(bytes);
  ByteWriter out(body);
  for (const auto* value : found) {
    out.u8(value != nullptr);
    out.text(value == nullptr ? kNone : *value);
  }
  return body;
}

}  // namespace rendezvous::tcpstore
GLOO_NAMESPACE_END
