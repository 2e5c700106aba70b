// The caller's memory during a call over links that need it registered. Where
// long messages come from there or go there, all of it together is registered;
// or it is copied, if it is short: to memory that stays registered, and back.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "algorithms/plan.h"
#include "algorithms/scratch.h"
#include "algorithms/state.h"
#include "gloo/internal/channel.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// The caller's vectors; see Run::within.
internal::MemoryRange inputOf(const Plan& plan, const Arguments& arguments);
internal::MemoryRange outputOf(const Plan& plan, const Arguments& arguments);

class CallersMemory {
 public:
  // Of the caller's vectors, from the beginning; 0: it stays where it is.
  struct Copied {
    size_t inputBytes = 0;
    size_t outputBytes = 0;
    size_t bytes() const { return inputBytes + outputBytes; }
  };
  static Copied copiedOf(internal::Channel& channel, Plan& plan,
                         const Arguments& arguments);

  // `copies`: of copied.bytes(). With none, what is long is registered.
  CallersMemory(internal::Channel& channel, Plan& plan,
                const Arguments& arguments, const Copied& copied, char* copies);

  // Of the run: with the copies in their places.
  const Arguments& arguments() const { return arguments_; }
  // The run has succeeded: puts the result where the caller wants it.
  void finish() const;

 private:
  void registerLong(internal::Channel& channel);

  Plan& plan_;
  Arguments arguments_;
  void* const output_;  // the caller's
  std::array<std::unique_ptr<internal::KeptMemory>, 2> kept_;
};

}  // namespace algorithms
GLOO_NAMESPACE_END
