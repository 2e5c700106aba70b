// A device that has links of several kinds waits for the better ones, and not
// for ever.
#include <gtest/gtest.h>

#include <sched.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transport/auto/factory.h"
#include "transport/auto/offer.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace transport::base;  // NOLINT: everything here is about it
using transport::automatic::AutoFactory;
using transport::automatic::encode;

class NoLink final : public PendingLink {
 public:
  std::vector<char> blob() const override { return {}; }
  std::unique_ptr<Link> complete(UniqueFd, const Hello&,
                                 LinkHandler&) override {
    return nullptr;
  }
};

// Makes a link with everybody, or puts everybody off.
class SomeFactory final : public LinkFactory {
 public:
  SomeFactory(std::string kind, const bool* busy)
      : kind_(std::move(kind)), busy_(busy) {}
  std::string kind() const override { return kind_; }
  LinkCaps caps(int) const override { return {}; }
  std::unique_ptr<PendingLink> prepare(int) override {
    return std::make_unique<NoLink>();
  }
  std::unique_ptr<PendingLink> answer(int peers, const Hello&) override {
    if (*busy_) {
      throw NotNowException("not now");
    }
    return prepare(peers);
  }
  void addStatistics(internal::Statistics&) const override {}

 private:
  const std::string kind_;
  const bool* busy_;
};

class PatienceTest : public ::testing::Test {
 protected:
  PatienceTest() {
    AutoFactory::Factories factories;
    factories.push_back(std::make_unique<SomeFactory>("better", &busy_));
    factories.push_back(std::make_unique<SomeFactory>("last", &never_));
    factory_ = std::make_unique<AutoFactory>("auto", std::move(factories), "");
  }

  // The kind of link that this caller gets; empty: it is put off.
  std::string answer(uint64_t caller, uint64_t mesh) {
    Hello hello;
    hello.srcNonce = caller;
    hello.dstNonce = mesh;
    hello.blob = encode({{"better", {}}, {"last", {}}});
    try {
      return transport::automatic::decodeOffers(
                 factory_->answer(1, hello)->blob())
          .at(0)
          .kind;
    } catch (const NotNowException&) {
      return "";
    }
  }
  std::string answerAtLast(uint64_t caller, uint64_t mesh) {
    std::string kind;
    while (kind.empty()) {
      kind = answer(caller, mesh);
      ::sched_yield();
    }
    return kind;
  }

  bool busy_ = true;
  const bool never_ = false;
  std::unique_ptr<AutoFactory> factory_;
};

TEST_F(PatienceTest, EachMeshIsShownIt) {
  EXPECT_EQ(answer(1, 100), "");
  EXPECT_EQ(answerAtLast(1, 100), "last");
  // The same device, later.
  EXPECT_EQ(answer(2, 200), "");
  busy_ = false;
  EXPECT_EQ(answer(2, 200), "better");
}

TEST_F(PatienceTest, WhoHasBeenPutOffForLongIsNotPutOffAgain) {
  EXPECT_EQ(answer(1, 100), "");
  EXPECT_EQ(answerAtLast(1, 100), "last");
  EXPECT_EQ(answer(1, 100), "last");
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
