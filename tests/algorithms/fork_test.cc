// What a forked child can do with the collectives' objects while a thread that
// only its parent has is in the middle of them: nothing, but at once.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "gloo/allreduce.h"
#include "gloo/allreduce_ring.h"
#include "gloo/barrier.h"
#include "tests/support/collectives.h"
#include "tests/support/fake_context.h"
#include "tests/support/forked_child.h"

GLOO_NAMESPACE_BEGIN
namespace {

using ContextPtr = std::shared_ptr<Context>;

// Where a thread stops until it may go on.
class Halt {
 public:
  void pass() {
    if (on_.exchange(false)) {
      reached_.set_value();
      left_.get_future().wait();
    }
  }

  // `body` runs in another thread; returns when that has stopped here.
  void stop(const std::function<void()>& body) {
    on_ = true;
    thread_ = std::thread(body);
    reached_.get_future().wait();
  }
  void goOn() {
    left_.set_value();
    thread_.join();
  }

 private:
  std::atomic<bool> on_{false};
  std::promise<void> reached_;
  std::promise<void> left_;
  std::thread thread_;
};

// Asked for its size when the collectives' state is made, and for the length of
// eager messages when that plans a call: both under a lock.
class HaltingTransport final : public testing_support::FakeTransportContext {
 public:
  struct Halts {
    Halt makingState;
    Halt planning;
  };

  HaltingTransport(internal::Channel& channel, Halts& halts)
      : FakeTransportContext(channel), halts_(halts) {}

  int size() const override {
    halts_.makingState.pass();
    return FakeTransportContext::size();
  }
  size_t eagerBytes() const override {
    halts_.planning.pass();
    return FakeTransportContext::eagerBytes();
  }

 private:
  Halts& halts_;
};

class HaltingContext final : public Context {
 public:
  using Context::Context;

  void connect(internal::Channel& channel, HaltingTransport::Halts& halts) {
    attach(nullptr, std::make_shared<HaltingTransport>(channel, halts));
  }
};

void reduce(const ContextPtr& context, size_t count) {
  std::vector<int> values(count, 1);
  AllreduceOptions opts(context);
  opts.setOutput(values.data(), count);
  opts.setReduceFunction(testing_support::adder<int>());
  allreduce(opts);
}

class CollectivesForkTest : public testing::Test {
 protected:
  CollectivesForkTest() { connect(); }

  void connect() { context_->connect(world_.channel(0), halts_); }

  testing_support::FakeWorld world_{1};
  HaltingTransport::Halts halts_;
  std::shared_ptr<HaltingContext> context_ =
      std::make_shared<HaltingContext>(0, 1);
};

TEST_F(CollectivesForkTest, ACallIsRefusedWhileAThreadOfTheParentPlans) {
  barrier(BarrierOptions(context_));  // there is a state
  halts_.planning.stop([&] { reduce(context_, 10); });
  EXPECT_TRUE(test::holdsInChild(
      [&] { return test::isRefused([&] { reduce(context_, 20); }); }));
  halts_.planning.goOn();
}

TEST_F(CollectivesForkTest,
       ACallIsRefusedWhileAThreadOfTheParentMakesTheState) {
  halts_.makingState.stop([&] { reduce(context_, 10); });
  EXPECT_TRUE(test::holdsInChild(
      [&] { return test::isRefused([&] { reduce(context_, 20); }); }));
  halts_.makingState.goOn();
}

TEST_F(CollectivesForkTest, AnotherCallOfTheSameOptionsIsRefused) {
  std::vector<int> values(10, 1);
  AllreduceOptions opts(context_);
  opts.setOutput(values.data(), values.size());
  opts.setReduceFunction(testing_support::adder<int>());
  for (int call = 0; call < 3; call++) {
    allreduce(opts);
  }
  EXPECT_TRUE(test::holdsInChild(
      [&] { return test::isRefused([&] { allreduce(opts); }); }));
}

TEST_F(CollectivesForkTest,
       AnObjectIsRefusedAndGoesWhileAThreadOfTheParentPlans) {
  std::vector<int> values(10, 1);
  auto object = std::make_unique<AllreduceRing<int>>(
      context_, std::vector<int*>{values.data()}, 10);
  halts_.planning.stop([&] { reduce(context_, 20); });
  EXPECT_TRUE(test::holdsInChild([&] {
    const bool refused = test::isRefused([&] { object->run(); });
    object.reset();
    context_.reset();
    return refused;
  }));
  halts_.planning.goOn();
}

// A vector is set under a lock of the dynamic loader.
TEST_F(CollectivesForkTest, OptionsAreMadeWhileAThreadOfTheParentMakesSome) {
  int value = 0;
  const auto make = [&] {
    AllreduceOptions opts(std::make_shared<Context>(0, 1));
    for (int i = 0; i < 100; i++) {
      opts.setOutput(&value, 1);
    }
    return true;
  };
  for (int i = 0; i < 5 && !HasFailure(); i++) {
    EXPECT_TRUE(test::holdsInChildrenWhile(make, make));
  }
}

TEST_F(CollectivesForkTest, AContextThatIsConnectedAnewIsTheChilds) {
  halts_.makingState.stop([&] { reduce(context_, 10); });
  EXPECT_TRUE(test::holdsInChild([&] {
    connect();
    reduce(context_, 20);
    return true;
  }));
  halts_.makingState.goOn();
}

}  // namespace
GLOO_NAMESPACE_END
