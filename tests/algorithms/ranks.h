// Ranks as threads over a fake channel.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "algorithms/state.h"
#include "tests/support/fake_channel.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

class Ranks {
 public:
  explicit Ranks(int size, testing_support::FakeOptions options = {},
                 const internal::Profile& profile = {})
      : world_(size, options) {
    for (int rank = 0; rank < size; rank++) {
      states_.push_back(
          std::make_unique<State>(world_.channel(rank), profile, ""));
    }
  }

  testing_support::FakeWorld& world() { return world_; }
  State& state(int rank) { return *states_.at(static_cast<size_t>(rank)); }
  int size() const { return world_.size(); }

  // Each rank's exception, or null, after body has run on all at once.
  std::vector<std::exception_ptr> outcomes(
      const std::function<void(int rank, State& state)>& body) {
    std::vector<std::exception_ptr> errors(states_.size());
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size(); rank++) {
      threads.emplace_back([&, rank] {
        try {
          body(rank, state(rank));
        } catch (...) {
          errors[static_cast<size_t>(rank)] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    return errors;
  }

  void run(const std::function<void(int rank, State& state)>& body) {
    for (const std::exception_ptr& error : outcomes(body)) {
      if (error != nullptr) {
        std::rethrow_exception(error);
      }
    }
  }

 private:
  testing_support::FakeWorld world_;
  std::vector<std::unique_ptr<State>> states_;
};

inline std::string textOf(const std::exception_ptr& error) {
  if (error == nullptr) {
    return "no error";
  }
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

// To add vectors of int64_t; `algorithm`: null for the cheapest.
inline Request sumRequest(const char* algorithm, size_t count) {
  Request request;
  request.collective = Collective::kAllreduce;
  request.type = internal::ElementType::kInt64;
  request.reduction = internal::Reduction::kSum;
  request.elementSize = sizeof(int64_t);
  request.counts.count = count;
  request.forced = algorithm;
  return request;
}

}  // namespace algorithms
GLOO_NAMESPACE_END
