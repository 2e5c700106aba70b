// From options to a run: what the free functions of the API share.
#pragma once

#include <cstddef>

#include "algorithms/state.h"
#include "gloo/context.h"
#include "gloo/internal/options.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

using internal::CollectiveCall;

// All of these throw InvalidOperationException.

// Runs the call once more if nothing of these options has changed since it was
// prepared. False: it is to be checked, and run.
bool runAgain(const internal::CollectiveOptions& options);

// Which of its vectors a rank's part in a call reads or writes. The others may
// be anything: callers pass the same arguments on all ranks.
struct Uses {
  bool inputs = true;
  bool outputs = true;
};

// Vectors that are used have memory, and all of a list the same length.
void requireVectors(const CollectiveCall& call, const char* collective,
                    Uses uses = {});
void requireRoot(const CollectiveCall& call, const char* collective);
void requireReduceFunction(const CollectiveCall& call, const char* collective);
// The same memory is fine, a part of it is not.
void requireNoOverlap(const internal::Vector& input,
                      const internal::Vector& output, const char* collective);
// One vector of each, as all collectives but allreduce and scatter have.
void requireOneInput(const CollectiveCall& call, const char* collective);
void requireOneOutput(const CollectiveCall& call, const char* collective);
// One count for each rank: offsets has one value more.
void requireCounts(const CollectiveCall& call,
                   const std::vector<size_t>& offsets, const char* collective,
                   const char* what);
// The elements of a vector that has to hold a part for each rank.
size_t elementsPerRank(const CollectiveCall& call,
                       const internal::Vector& vector, const char* collective,
                       const char* what);
void requireElements(const CollectiveCall& call, const internal::Vector& vector,
                     size_t elements, const char* collective, const char* what);

// Whether the input is the output's part at `offset` bytes. If not, they have
// no byte in common.
bool isPartOf(const internal::Vector& output, size_t offset,
              const internal::Vector& input, const char* collective);

// The algorithm that was asked for by name, of a call whose vector, or all
// ranks' blocks together, has so many bytes; null: the library chooses. Equal
// on all ranks where these are.
const char* algorithmFor(const CollectiveCall& call, size_t bytes);

// The parts of a request and of arguments that come from the options alone.
Request requestOf(Collective collective, const CollectiveCall& call);
std::chrono::milliseconds timeoutOf(const CollectiveCall& call);
Arguments argumentsOf(const CollectiveCall& call, uint8_t prefix);
Reducer reducerOf(const CollectiveCall& call);

// Copies outputs[0] to the other outputs.
void copyToAll(const internal::Vectors& outputs);

bool isAverage(const CollectiveCall& call);
// The end of an average: a sum divided by the number of contributions.
void divideIfAverage(const CollectiveCall& call, void* data, size_t bytes,
                     size_t contributions);

}  // namespace algorithms
GLOO_NAMESPACE_END
