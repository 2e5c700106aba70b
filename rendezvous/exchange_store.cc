#include "gloo/rendezvous/exchange_store.h"

#include <algorithm>
#include <utility>

#include "gloo/common/error.h"
#include "gloo/common/string.h"
#include "gloo/transport/address.h"
#include "rendezvous/record.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

static_assert(ExchangeStore::kMaxBytes >= Record::kHeaderBytes +
                                              Record::kMaxExtraBytes +
                                              transport::Address::kMaxByteSize);

namespace {

Record recordOf(const std::vector<char>& data) {
  std::string why;
  auto record = decodeRecord(data, &why);
  if (!record) {
    throw InvalidOperationException(MakeString(
        "ExchangeStore: only connectFullMesh() writes to it; ", why));
  }
  return *std::move(record);
}

// The values never change: what is wrong with one is said at once.
void checkValue(int rank, const std::vector<char>& data) {
  std::string why;
  const auto record = decodeRecord(data, &why);
  if (record && record->rank == rank) {
    return;
  }
  if (record) {
    why = MakeString("it is that of rank ", record->rank);
  }
  throw InvalidOperationException(MakeString(
      "ExchangeStore: what the exchange returned as the value of rank ", rank,
      " is not what that gave: ", why));
}

}  // namespace

ExchangeStore::ExchangeStore(Exchange exchange)
    : exchange_(std::move(exchange)) {
  if (exchange_ == nullptr) {
    throw InvalidOperationException("ExchangeStore: the exchange is null");
  }
}

ExchangeStore::~ExchangeStore() = default;

// Why nothing can be done with the store any more.
void ExchangeStore::throwFailed() const {
  std::string why = "for no reason that is known";
  try {
    std::rethrow_exception(error_);
  } catch (const std::exception& error) {
    why = error.what();
  } catch (...) {  // the caller's exchange may throw anything
  }
  throw InvalidOperationException(MakeString(
      "ExchangeStore: its exchange has failed before, and is not repeated: ",
      why));
}

void ExchangeStore::set(const std::string& key, const std::vector<char>& data) {
  bool isFirst = false;
  std::call_once(exchanged_, [&] {
    isFirst = true;
    try {
      exchange(key, data);
    } catch (...) {  // others may wait in the next one: there is none
      error_ = std::current_exception();
    }
  });
  if (isFirst && error_ != nullptr) {
    std::rethrow_exception(error_);
  }
  if (error_ != nullptr) {
    throwFailed();
  }
  if (recordOf(data).nonce != nonce_) {
    throw InvalidOperationException(
        "ExchangeStore: it has connected ranks already; each connectFullMesh() "
        "needs one of its own");
  }
  HashStore::multi_set({key}, {data});
}

void ExchangeStore::exchange(const std::string& key,
                             const std::vector<char>& data) {
  const Record mine = recordOf(data);
  const std::string own = recordKey(mine.rank);
  const size_t prefixBytes = key.size() - std::min(key.size(), own.size());
  if (key.compare(prefixBytes, own.size(), own) != 0) {
    throw InvalidOperationException(MakeString(
        "ExchangeStore: the record of rank ", mine.rank, " as key ", key));
  }
  const std::string prefix = key.substr(0, prefixBytes);
  nonce_ = mine.nonce;
  const auto all = exchange_(data);
  if (all.size() != static_cast<size_t>(mine.size)) {
    throw InvalidOperationException(
        MakeString("ExchangeStore: the exchange returned ", all.size(),
                   " values for ", mine.size, " ranks"));
  }
  std::vector<std::string> keys;
  for (int rank = 0; rank < mine.size; rank++) {
    checkValue(rank, all[static_cast<size_t>(rank)]);
    keys.push_back(prefix + recordKey(rank));
  }
  HashStore::multi_set(keys, all);
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
