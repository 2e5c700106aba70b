#include "algorithms/callers_memory.h"

#include <algorithm>
#include <vector>

#include "gloo/internal/copy.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

using internal::MemoryRange;

constexpr size_t kLine = 64;

size_t wholeLines(size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// One message alone is registered as it is.
Extent ofSeveral(const Extent& extent) {
  return extent.messages > 1 ? extent : Extent{};
}

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

// The caller's vectors. In place they are one, of which the shorter is a part.
MemoryRange vectorOf(const void* data, size_t bytes, const void* other,
                     size_t otherBytes) {
  return {static_cast<const char*>(data),
          data == other ? std::max(bytes, otherBytes) : bytes};
}

// An input in pieces: a block for each rank.
class InputBlocks {
 public:
  InputBlocks(const internal::Channel& channel, const Plan& plan,
              const Arguments& arguments)
      : blocks_(arguments.inputBlocks),
        count_(static_cast<size_t>(channel.size())),
        bytes_(plan.inputBytes() / count_) {}

  template <typename Is>
  bool all(const Is& is) const {
    return std::all_of(blocks_, blocks_ + count_, [&](const void* block) {
      return is(MemoryRange{static_cast<const char*>(block), bytes_});
    });
  }

  void copyTo(char* to) const {
    for (size_t i = 0; i < count_; i++) {
      internal::copyCached(to + i * bytes_, blocks_[i], bytes_);
    }
  }

 private:
  const void* const* const blocks_;
  const size_t count_;
  const size_t bytes_;
};

}  // namespace

MemoryRange inputOf(const Plan& plan, const Arguments& arguments) {
  return vectorOf(arguments.input, plan.inputBytes(), arguments.output,
                  plan.outputBytes());
}

MemoryRange outputOf(const Plan& plan, const Arguments& arguments) {
  return vectorOf(arguments.output, plan.outputBytes(), arguments.input,
                  plan.inputBytes());
}

// All or nothing: a part that has to be registered may as well be all.
CallersMemory::Copied CallersMemory::copiedOf(internal::Channel& channel,
                                              Plan& plan,
                                              const Arguments& arguments) {
  Copied copied;
  if (plan.longOutput().messages > 0) {
    const MemoryRange output = outputOf(plan, arguments);
    const size_t own = arguments.own == nullptr ? 0 : (*arguments.own)[0].bytes;
    if (!channel.isBetterCopied(output, output.bytes) ||
        plan.outputFootprint().end < own) {
      return {};
    }
    copied.outputBytes = wholeLines(plan.outputFootprint().end);
  }
  if (plan.longInput().messages > 0 && plan.copiedBytes() == 0) {
    const size_t bytes = copied.outputBytes + plan.inputBytes();
    const auto better = [&](const MemoryRange& part) {
      return channel.isBetterCopied(part, bytes);
    };
    const InputBlocks blocks(channel, plan, arguments);
    if (arguments.inputBlocks != nullptr ? !blocks.all(better)
                                         : !better(inputOf(plan, arguments))) {
      return {};
    }
    copied.inputBytes = wholeLines(plan.inputBytes());
  }
  return copied;
}

CallersMemory::CallersMemory(internal::Channel& channel, Plan& plan,
                             const Arguments& arguments, const Copied& copied,
                             char* copies)
    : plan_(plan), arguments_(arguments), output_(arguments.output) {
  if (copied.bytes() == 0) {
    registerLong(channel);
    return;
  }
  if (copied.inputBytes > 0) {
    if (arguments.inputBlocks != nullptr) {
      InputBlocks(channel, plan, arguments).copyTo(copies);
    } else {
      copyParts(copies, arguments.input, plan.inputFootprint().needed);
    }
    arguments_.input = copies;
    arguments_.inputBlocks = nullptr;
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
  Extent input = ofSeveral(plan_.longInput());
  Extent output = ofSeveral(plan_.longOutput());
  if (arguments_.input == arguments_.output && input.end > 0) {
    output = output.end > 0 ? Extent{std::min(input.begin, output.begin),
                                     std::max(input.end, output.end),
                                     input.messages + output.messages,
                                     input.sent || output.sent,
                                     input.received || output.received}
                            : input;
    input = {};
  }
  if (plan_.copiedBytes() == 0 && arguments_.inputBlocks == nullptr) {
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
