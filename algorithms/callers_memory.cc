#include "algorithms/callers_memory.h"

#include <algorithm>
#include <vector>

#include "gloo/internal/copy.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

constexpr size_t kLine = 64;

size_t wholeLines(size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

std::unique_ptr<internal::KeptMemory> keep(internal::Channel& channel,
                                           const void* memory,
                                           const Extent& extent) {
  return extent.end == 0
             ? nullptr
             : channel.keep(
                   static_cast<char*>(const_cast<void*>(memory)) + extent.begin,
                   extent.end - extent.begin, extent.sent && extent.received);
}

void copyParts(void* to, const void* from, const std::vector<Span>& parts) {
  for (const Span& part : parts) {
    internal::copyCached(static_cast<char*>(to) + part.begin,
                         static_cast<const char*>(from) + part.begin,
                         part.end - part.begin);
  }
}

bool takesInput(const Plan& plan, const Arguments& arguments) {
  return plan.copiedBytes() == 0 && arguments.inputBlocks == nullptr;
}

}  // namespace

// All or nothing: a part that has to be registered may as well be all.
CallersMemory::Copied CallersMemory::copiedOf(internal::Channel& channel,
                                              const Plan& plan,
                                              const Arguments& arguments) {
  Copied copied;
  const auto add = [&](const Footprint& print, const void* memory,
                       size_t* bytes) {
    if (!print.travels) {
      return true;
    }
    *bytes = wholeLines(print.end);
    return channel.isBetterCopied({static_cast<const char*>(memory), print.end},
                                  copied.bytes());
  };
  const Footprint& output = plan.outputFootprint();
  const bool holdsOwn =
      arguments.own == nullptr || (*arguments.own)[0].bytes <= output.end;
  const bool good =
      holdsOwn && add(output, arguments.output, &copied.outputBytes) &&
      (!takesInput(plan, arguments) ||
       add(plan.inputFootprint(), arguments.input, &copied.inputBytes));
  return good ? copied : Copied{};
}

CallersMemory::CallersMemory(internal::Channel& channel, const Plan& plan,
                             const Arguments& arguments, const Copied& copied,
                             char* copies)
    : plan_(plan), arguments_(arguments), output_(arguments.output) {
  if (copied.bytes() == 0) {
    registerLong(channel);
    return;
  }
  if (copied.inputBytes > 0) {
    copyParts(copies, arguments.input, plan.inputFootprint().needed);
    arguments_.input = copies;
  }
  if (copied.outputBytes > 0) {
    char* const output = copies + copied.inputBytes;
    if (arguments.own == nullptr) {
      copyParts(output, output_, plan.outputFootprint().needed);
    }
    arguments_.output = output;
  }
}

void CallersMemory::registerLong(internal::Channel& channel) {
  Extent input = plan_.longInput();
  Extent output = plan_.longOutput();
  if (arguments_.input == arguments_.output && input.end > 0) {
    output = output.end > 0 ? Extent{std::min(input.begin, output.begin),
                                     std::max(input.end, output.end),
                                     input.sent || output.sent,
                                     input.received || output.received}
                            : input;
    input = {};
  }
  if (takesInput(plan_, arguments_)) {
    kept_[0] = keep(channel, arguments_.input, input);
  }
  kept_[1] = keep(channel, arguments_.output, output);
}

void CallersMemory::finish() const {
  if (arguments_.output != output_) {
    copyParts(output_, arguments_.output, plan_.outputFootprint().written);
  }
}

}  // namespace algorithms
GLOO_NAMESPACE_END
