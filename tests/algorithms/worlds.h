// gloo::Contexts of several ranks as threads over a fake channel.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/fake_context.h"

GLOO_NAMESPACE_BEGIN
namespace testing_support {

using ContextPtr = std::shared_ptr<::gloo::Context>;

class ContextWorld {
 public:
  explicit ContextWorld(int size, FakeOptions options = {}, int base = 2)
      : world_(size, options) {
    for (int rank = 0; rank < size; rank++) {
      contexts_.push_back(
          std::make_shared<FakeContext>(world_.channel(rank), base));
    }
  }

  FakeWorld& world() { return world_; }
  const ContextPtr& context(int rank) {
    return contexts_.at(static_cast<size_t>(rank));
  }
  int size() const { return world_.size(); }

  std::vector<std::exception_ptr> outcomes(
      const std::function<void(const ContextPtr& context)>& body) {
    std::vector<std::exception_ptr> errors(contexts_.size());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < contexts_.size(); rank++) {
      threads.emplace_back([&, rank] {
        try {
          body(contexts_[rank]);
        } catch (...) {
          errors[rank] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    return errors;
  }

  void run(const std::function<void(const ContextPtr& context)>& body) {
    for (const std::exception_ptr& error : outcomes(body)) {
      if (error != nullptr) {
        std::rethrow_exception(error);
      }
    }
  }

 private:
  FakeWorld world_;
  std::vector<ContextPtr> contexts_;
};

}  // namespace testing_support
GLOO_NAMESPACE_END
