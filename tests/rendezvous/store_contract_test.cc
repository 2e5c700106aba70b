// What every store of the library promises.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <set>
#include <thread>

#include "gloo/common/error.h"
#include "tests/rendezvous/child_process.h"
#include "tests/rendezvous/store_kinds.h"

namespace gloo_test {

namespace {

using gloo::Deadline;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

class StoreContract : public testing::TestWithParam<StoreKind> {
 protected:
  std::unique_ptr<StoreFixture> fixture_ = GetParam().make();
  std::shared_ptr<gloo::rendezvous::Store> store_ = fixture_->open();
};

std::vector<std::string> awkwardKeys() {
  return {"plain",
          "with/slash",
          "with//slash",
          "..",
          ".",
          "../../escape",
          "with space",
          "tab\tnewline\n",
          "%41",
          "A",
          "a",
          "\xff\xfe\x80",
          "Ü",
          "",
          "key-plain",
          ".lock",
          std::string("zero\0byte", 9),
          std::string(1000, 'x'),
          std::string(999, 'x') + "y",
          std::string(3000, '/')};
}

TEST_P(StoreContract, AValueComesBackByteForByte) {
  std::vector<char> all;
  for (int i = 0; i < 256; i++) {
    all.push_back(static_cast<char>(i));
  }
  const std::vector<char> large(size_t{1} << 20, 'z');
  for (const auto& value : {all, large, std::vector<char>()}) {
    store_->set("k", value);
    EXPECT_EQ(fixture_->open()->get("k"), value);
  }
}

TEST_P(StoreContract, TheLastWriteWins) {
  store_->set("k", bytesOf("a long first value"));
  store_->set("k", bytesOf("second"));
  EXPECT_EQ(store_->get("k"), bytesOf("second"));
}

TEST_P(StoreContract, KeysOfAnyBytesAreDistinct) {
  const auto keys = awkwardKeys();
  for (size_t i = 0; i < keys.size(); i++) {
    store_->set(keys[i], bytesOf("value " + std::to_string(i)));
  }
  for (size_t i = 0; i < keys.size(); i++) {
    EXPECT_EQ(store_->get(keys[i]), bytesOf("value " + std::to_string(i)))
        << "key " << i;
  }
}

// It would be taken for none.
TEST_P(StoreContract, ANegativeTimeoutIsRefused) {
  store_->set("k", bytesOf("value"));
  EXPECT_THROW(store_->wait({"k"}, milliseconds(-1)),
               gloo::InvalidOperationException);
  EXPECT_THROW(store_->wait_get("k", milliseconds(-1)),
               gloo::InvalidOperationException);
}

TEST_P(StoreContract, GetBlocksUntilAnotherClientSets) {
  const auto other = fixture_->open();
  std::thread writer([&] {
    // The reader is, most likely, blocked by then; either way it must succeed.
    EXPECT_FALSE(other->wait_any({"never"}, Deadline::after(milliseconds(50))));
    other->set("k", bytesOf("v"));
  });
  EXPECT_EQ(store_->get("k"), bytesOf("v"));
  writer.join();
}

TEST_P(StoreContract, WaitReturnsOnceAllKeysExist) {
  const auto other = fixture_->open();
  std::thread writer([&] {
    for (const char* key : {"c", "a", "b"}) {
      other->set(key, bytesOf(key));
    }
  });
  store_->wait({"a", "b", "c"}, std::chrono::seconds(20));
  writer.join();
  for (const auto& value : store_->peek({"a", "b", "c"})) {
    EXPECT_TRUE(value.has_value());
  }
}

TEST_P(StoreContract, WaitTimesOutAndNamesTheKey) {
  store_->set("there", bytesOf("v"));
  const auto begin = Clock::now();
  try {
    store_->wait({"there", "absent-key"}, milliseconds(60));
    FAIL() << "no exception";
  } catch (const gloo::TimeoutException& error) {
    EXPECT_NE(std::string(error.what()).find("Timed out"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("absent-key"), std::string::npos);
  }
  EXPECT_GE(Clock::now() - begin, milliseconds(60));
}

TEST_P(StoreContract, WaitGetReturnsTheValueOrTimesOut) {
  store_->set("k", bytesOf("v"));
  EXPECT_EQ(store_->wait_get("k", milliseconds(1000)), bytesOf("v"));
  EXPECT_THROW(store_->wait_get("absent", milliseconds(20)), gloo::IoException);
}

TEST_P(StoreContract, PeekShowsWhatIsThereWithoutBlocking) {
  store_->set("a", bytesOf("1"));
  store_->set("empty", {});
  const auto found = store_->peek({"absent", "a", "empty"});
  ASSERT_EQ(found.size(), 3U);
  EXPECT_FALSE(found[0].has_value());
  EXPECT_EQ(found[1], bytesOf("1"));
  EXPECT_EQ(found[2], std::vector<char>());
}

TEST_P(StoreContract, WaitAnyReturnsForTheFirstKey) {
  EXPECT_FALSE(store_->wait_any({"a", "b"}, Deadline::after(milliseconds(5))));
  const auto other = fixture_->open();
  std::thread writer([&] { other->set("b", bytesOf("v")); });
  EXPECT_TRUE(
      store_->wait_any({"a", "b"}, Deadline::after(std::chrono::seconds(20))));
  writer.join();
}

TEST_P(StoreContract, ManyValuesTravelTogether) {
  ASSERT_TRUE(store_->has_v2_support());
  std::vector<std::string> keys;
  std::vector<std::vector<char>> values;
  for (int i = 0; i < 300; i++) {
    keys.push_back("key" + std::to_string(i));
    values.push_back(bytesOf("value" + std::to_string(i)));
  }
  store_->multi_set(keys, values);
  EXPECT_EQ(store_->multi_get(keys), values);
  EXPECT_THROW(store_->multi_set({"a", "b"}, {{}}),
               gloo::InvalidOperationException);
}

TEST_P(StoreContract, AppendConcatenates) {
  store_->append("k", bytesOf("ab"));
  store_->append("k", bytesOf("c"));
  EXPECT_EQ(store_->get("k"), bytesOf("abc"));
}

TEST_P(StoreContract, AddCountsFromZeroAndIsReadableAsText) {
  EXPECT_EQ(store_->add("n", 5), 5);
  EXPECT_EQ(store_->add("n", -7), -2);
  EXPECT_EQ(store_->get("n"), bytesOf("-2"));
  store_->set("text", bytesOf("x"));
  EXPECT_THROW(store_->add("text", 1), gloo::IoException);
  EXPECT_EQ(store_->get("text"), bytesOf("x"));
  store_->set("large", bytesOf("9223372036854775807"));
  EXPECT_THROW(store_->add("large", 1), gloo::IoException);
}

TEST_P(StoreContract, ConcurrentAddsAndAppendsAreAllCounted) {
  constexpr int kThreads = 4;
  constexpr int kTimes = 25;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; t++) {
    threads.emplace_back([&] {
      const auto mine = fixture_->open();
      for (int i = 0; i < kTimes; i++) {
        mine->add("sum", 3);
        mine->append("text", bytesOf("xy"));
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(store_->add("sum", 0), 3 * kThreads * kTimes);
  EXPECT_EQ(store_->get("text").size(), size_t{2 * kThreads * kTimes});
}

TEST_P(StoreContract, ProcessesShareIt) {
  if (!fixture_->sharedByProcesses()) {
    EXPECT_EQ(GetParam().name, "hash");
    return;
  }
  std::vector<std::unique_ptr<ChildProcess>> children;
  for (int i = 0; i < 3; i++) {
    children.push_back(std::make_unique<ChildProcess>([this, i] {
      const auto mine = fixture_->open();
      mine->set("from" + std::to_string(i), bytesOf("child"));
      mine->add("sum", 1);
      return mine->get("go") == bytesOf("now") ? 0 : 1;
    }));
  }
  store_->wait({"from0", "from1", "from2"}, std::chrono::seconds(20));
  store_->set("go", bytesOf("now"));
  for (auto& child : children) {
    EXPECT_EQ(child->wait(), 0);
  }
  EXPECT_EQ(store_->add("sum", 0), 3);
}

// Values alternate between two clients, so that each change is waited for. The
// bound is generous; the median is what people look at.
TEST_P(StoreContract, NoticesANewKeyQuickly) {
  constexpr int kTimes = 50;
  const auto other = fixture_->open();
  std::thread echo([&] {
    for (int i = 0; i < kTimes; i++) {
      other->wait({"ping" + std::to_string(i)}, std::chrono::seconds(20));
      other->set("pong" + std::to_string(i), bytesOf("x"));
    }
  });
  std::vector<double> halves;
  for (int i = 0; i < kTimes; i++) {
    const auto begin = Clock::now();
    store_->set("ping" + std::to_string(i), bytesOf("x"));
    store_->wait({"pong" + std::to_string(i)}, std::chrono::seconds(20));
    halves.push_back(
        std::chrono::duration<double, std::micro>(Clock::now() - begin)
            .count() /
        2);
  }
  echo.join();
  std::sort(halves.begin(), halves.end());
  const double median = halves[kTimes / 2];
  RecordProperty("microseconds", std::to_string(median));
  std::printf("%s: %.0f us from set to notice\n", GetParam().name.c_str(),
              median);
  EXPECT_LT(median, 20000);
}

TEST_P(StoreContract, WaitingUsesLessThanFivePercentOfACore) {
  const auto cpu = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           std::chrono::microseconds(usage.ru_utime.tv_usec +
                                     usage.ru_stime.tv_usec);
  };
  std::vector<std::string> keys;
  for (int i = 0; i < 63; i++) {
    keys.push_back("absent" + std::to_string(i));
  }
  const auto before = cpu();
  EXPECT_FALSE(store_->wait_any(keys, Deadline::after(milliseconds(1000))));
  const auto used = cpu() - before;
  std::printf("%s: %.1f%% of a core\n", GetParam().name.c_str(),
              static_cast<double>(used.count()) / 1e4);
  EXPECT_LT(used, milliseconds(50));
}

INSTANTIATE_TEST_SUITE_P(All, StoreContract, testing::ValuesIn(allStoreKinds()),
                         [](const auto& info) { return info.param.name; });

}  // namespace

}  // namespace gloo_test
