// Keys that claim more than was exported, and so pass the check of who calls:
// the target's memory is guarded where it is, by the device or by its process.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/transport/contract/contract.h"
#include "tests/transport/contract/keys.h"
#include "transport/base/region_key.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using transport::RemoteAccess;
using transport::base::RegionKey;

constexpr size_t kPage = 4096;

class ForgedKeyTest : public ContractTest {
 protected:
  struct Case {
    bool isPut;
    RemoteAccess exportedFor;
    size_t remoteOffset;  // of 200 bytes, in an exported page
    bool own;             // memory of the rank that forges
  };
  void expectRefused(const Case& c) const;
};

// With all rights, and twice as long.
RegionKey widened(const RegionKey& key) {
  class Claimed final : public transport::base::Region {
   public:
    explicit Claimed(const RegionKey& key) : key_(key) {}
    uint64_t remoteAddress() const override { return key_.address; }
    uint32_t remoteKey() const override { return key_.key; }

   private:
    const RegionKey& key_;
  };
  const Claimed claimed(key);
  return {key.rank,  2 * key.size, RemoteAccess::kReadWrite,
          key.nonce, key.id,       &claimed};
}

// The middle one of three pages is exported, and used at this offset by the
// 200 bytes in the middle of the caller's own three.
void ForgedKeyTest::expectRefused(const Case& c) const {
  run(2, [&c](const ContextPtr& context) {
    const char mine = context->rank == 0 ? 'c' : 'x';
    std::vector<char> bytes(3 * kPage, mine);
    auto middle = context->createUnboundBuffer(bytes.data() + kPage, kPage);
    auto own = context->createUnboundBuffer(bytes.data(), bytes.size());
    if (context->rank == 0) {
      sendKey(context, 1, *middle, c.exportedFor);
      EXPECT_THROW(awaitSignal(context, 1), IoException);
    } else {
      auto foreign = recvKey(context, 0);
      const auto key =
          c.own ? middle->getRemoteKey(c.exportedFor) : std::move(foreign);
      const RegionKey wide = widened(dynamic_cast<const RegionKey&>(*key));
      std::string text;
      try {
        if (c.isPut) {
          own->put(wide, 1, kPage, c.remoteOffset, 200);
        } else {
          own->get(wide, 1, kPage, c.remoteOffset, 200);
        }
        own->waitSend();
      } catch (const IoException& e) {
        text = e.what();
      }
      EXPECT_THAT(
          text,
          AnyOf(HasSubstr("remote access error"),
                HasSubstr(c.exportedFor == RemoteAccess::kReadWrite
                              ? "bytes 4000+200 are outside the exported 4096"
                              : "its memory was exported for ")));
    }
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), mine), 3 * kPage);
  });
}

TEST_P(ForgedKeyTest, OfMoreBytesThanWereExported) {
  for (const bool own : {false, true}) {
    expectRefused({true, RemoteAccess::kReadWrite, 4000, own});
    expectRefused({false, RemoteAccess::kReadWrite, 4000, own});
  }
}

TEST_P(ForgedKeyTest, OfAnotherUseThanItWasExportedFor) {
  expectRefused({true, RemoteAccess::kRead, 0, false});
  expectRefused({false, RemoteAccess::kWrite, 0, false});
}

GLOO_CONTRACT_SUITE(ForgedKeyTest);

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
