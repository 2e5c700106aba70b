// Gathers records from stores that take their time.
#include "rendezvous/record_reader.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "gloo/rendezvous/tcp_store.h"
#include "rendezvous/record.h"
#include "tests/rendezvous/slow_relay.h"
#include "tests/rendezvous/store_kinds.h"
#include "tests/rendezvous/user_stores.h"

namespace gloo_test {

namespace {

using gloo::Deadline;
using gloo::rendezvous::recordKey;
using gloo::rendezvous::RecordReader;
using gloo::rendezvous::TcpStore;
using gloo::rendezvous::TcpStoreServer;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<int> ranksBelow(int size) {
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// How many records come until the deadline.
size_t gather(RecordReader& reader, size_t wanted, Deadline deadline) {
  size_t records = 0;
  while (records < wanted && !deadline.expired()) {
    records += reader.take().size();
    std::this_thread::yield();
  }
  return records;
}

// Its server answers thousands of ranks, one after the other. A reader that
// gave up an answer and asked again would make it slower still.
TEST(RecordReaderTest, RecordsOfASlowServerComeAllTheSame) {
  TcpStoreServer server("127.0.0.1", 0);
  const SlowRelay relay(server.port(), milliseconds(400));
  TcpStore store("127.0.0.1", relay.port());
  TcpStore others("127.0.0.1", server.port());
  constexpr int kSize = 3;
  const Deadline deadline = Deadline::after(seconds(10));
  RecordReader reader(store, kSize, deadline);
  reader.start(ranksBelow(kSize));
  for (int rank = 0; rank < kSize; rank++) {
    others.set(recordKey(rank), bytesOf("record"));
  }
  EXPECT_EQ(gather(reader, kSize, deadline), size_t{kSize});
}

// Even where the look for records lasts as long as all the time there is.
TEST(RecordReaderTest, ItsEndDoesNotWaitForASilentServer) {
  TcpStoreServer server("127.0.0.1", 0);
  SlowRelay relay(server.port(), milliseconds(0));
  TcpStore store("127.0.0.1", relay.port());
  store.set(recordKey(0), bytesOf("record"));
  auto reader =
      std::make_unique<RecordReader>(store, 2, Deadline::after(seconds(60)));
  relay.beSilent();
  reader->start(ranksBelow(2));
  const Deadline soon = Deadline::after(seconds(20));
  while (relay.peeks() == 0 && !soon.expired()) {
    std::this_thread::yield();
  }
  ASSERT_GT(relay.peeks(), 0);
  const auto begin = std::chrono::steady_clock::now();
  reader.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(5));
}

// More than are waited for at the same time; the last ones come alone.
TEST(RecordReaderTest, ManyRecordsThatComeInAnyOrderAreAllFound) {
  constexpr int kSize = 200;
  TcpStoreServer server("127.0.0.1", 0);
  TcpStore store("127.0.0.1", server.port());
  const Deadline deadline = Deadline::after(seconds(60));
  RecordReader reader(store, kSize, deadline);
  reader.start(ranksBelow(kSize));
  TcpStore others("127.0.0.1", server.port());
  size_t found = 0;
  for (size_t i = 0; i < kSize; i++) {
    others.set(recordKey(static_cast<int>(i) * 77 % kSize), bytesOf("record"));
    if (i % 50 == 0 || i > kSize - 5) {
      found += gather(reader, i + 1 - found, deadline);
      EXPECT_EQ(found, i + 1);
    }
  }
}

// The store fails, but never twice in a row without time passing.
template <typename UserStore>
class RecordReaderByUserStore : public testing::Test {};
using UserStores = testing::Types<TimedStore, V2Store>;
TYPED_TEST_SUITE(RecordReaderByUserStore, UserStores);

TYPED_TEST(RecordReaderByUserStore, FailuresCountOnlyInARow) {
  UserMap map;
  AlternatingStore<TypeParam> store(map);
  const Deadline deadline = Deadline::after(seconds(20));
  RecordReader reader(store, 1, deadline);
  reader.start(ranksBelow(1));
  constexpr int kRounds = 6;
  while (store.waits < 2 * kRounds && !deadline.expired()) {
    ASSERT_NO_THROW(reader.take());
    std::this_thread::sleep_for(milliseconds(5));
  }
  store.set(recordKey(0), bytesOf("record"));
  EXPECT_EQ(gather(reader, 1, deadline), 1U);
}

}  // namespace

}  // namespace gloo_test
