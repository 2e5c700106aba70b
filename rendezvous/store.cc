#include "gloo/rendezvous/store.h"

#include "gloo/common/error.h"
#include "gloo/internal/require_timeout.h"
#include "rendezvous/one_for_each.h"
#include "rendezvous/operation_deadline.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

namespace {

[[noreturn]] void unsupported(const Store& store, const char* call) {
  throw InvalidOperationException(
      MakeString(store.str(), ": this store has no ", call));
}

std::string listKeys(const std::vector<std::string>& keys) {
  constexpr size_t kShown = 4;
  std::string text;
  for (size_t i = 0; i < keys.size() && i < kShown; i++) {
    text += (i == 0 ? "" : ", ") + keys[i];
  }
  if (keys.size() > kShown) {
    text += MakeString(" and ", keys.size() - kShown, " more");
  }
  return text;
}

}  // namespace

Store::~Store() = default;

void Store::wait(const std::vector<std::string>& keys,
                 const std::chrono::milliseconds& timeout) {
  internal::requireTimeout(timeout);
  wait(keys);
}

std::vector<std::vector<char>> Store::multi_get(
    const std::vector<std::string>& /*keys*/) {
  unsupported(*this, "multi_get");
}

void Store::multi_set(const std::vector<std::string>& /*keys*/,
                      const std::vector<std::vector<char>>& /*values*/) {
  unsupported(*this, "multi_set");
}

void Store::append(const std::string& /*key*/,
                   const std::vector<char>& /*value*/) {
  unsupported(*this, "append");
}

int64_t Store::add(const std::string& /*key*/, int64_t /*value*/) {
  unsupported(*this, "add");
}

std::vector<std::optional<std::vector<char>>> Store::peek(
    const std::vector<std::string>& /*keys*/) {
  unsupported(*this, "peek");
}

bool Store::wait_any(const std::vector<std::string>& /*keys*/,
                     Deadline /*deadline*/) {
  unsupported(*this, "wait_any");
}

PeekableStore::~PeekableStore() = default;

std::vector<char> PeekableStore::get(const std::string& key) {
  return std::move(gather({key}, kDefaultTimeout)[0]);
}

std::vector<char> PeekableStore::wait_get(
    const std::string& key, const std::chrono::milliseconds& timeout) {
  return std::move(gather({key}, timeout)[0]);
}

void PeekableStore::wait(const std::vector<std::string>& keys) {
  gather(keys, kDefaultTimeout);
}

void PeekableStore::wait(const std::vector<std::string>& keys,
                         const std::chrono::milliseconds& timeout) {
  gather(keys, timeout);
}

std::vector<std::vector<char>> PeekableStore::multi_get(
    const std::vector<std::string>& keys) {
  return gather(keys, kDefaultTimeout);
}

std::vector<std::vector<char>> PeekableStore::gather(
    const std::vector<std::string>& keys, std::chrono::milliseconds timeout) {
  internal::requireTimeout(timeout);
  // What is there is found, however short the timeout.
  constexpr std::chrono::seconds kGrace(1);
  const Deadline deadline = Deadline::after(timeout);
  const OperationDeadline limit(
      deadline.never() ? deadline : Deadline(deadline.at() + kGrace));
  std::vector<std::vector<char>> values(keys.size());
  std::vector<size_t> missing(keys.size());
  for (size_t i = 0; i < keys.size(); i++) {
    missing[i] = i;
  }
  std::vector<std::string> wanted = keys;
  while (!wanted.empty()) {
    // Here, not by what wait_any says: it may find what is no value for peek.
    const bool last = deadline.expired();
    auto found = oneForEach(wanted, peek(wanted));
    std::vector<size_t> stillMissing;
    wanted.clear();
    for (size_t i = 0; i < found.size(); i++) {
      if (found[i]) {
        values[missing[i]] = std::move(*found[i]);
      } else {
        stillMissing.push_back(missing[i]);
        wanted.push_back(keys[missing[i]]);
      }
    }
    const bool nothingNew = stillMissing.size() == missing.size();
    missing = std::move(stillMissing);
    if (!wanted.empty() && last) {
      throw TimeoutException(MakeString(
          "Timed out after ", timeout.count(), " ms: ", str(),
          " has no value for ", listKeys(wanted),
          "; check that the rank that sets it runs and uses this store"));
    }
    // After something new first a look at the others alone: a store may know
    // that one of those can never be found. All are needed, so that it is any
    // of them that is waited for; mostly all are there once the last one is.
    if (!wanted.empty() && nothingNew) {
      wait_any({wanted.back()}, deadline);
    }
  }
  return values;
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
