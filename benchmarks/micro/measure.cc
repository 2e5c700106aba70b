#include "benchmarks/micro/measure.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>

#include "benchmarks/support/median.h"
#include "gloo/common/aligned_allocator.h"

namespace gloo::micro {
namespace {

using internal::ElementType;
using internal::Reduction;

// Three of them fit in the second-level cache of any server processor and in
// the first-level one of none.
constexpr size_t kBytes = 192 * 1024;
constexpr int kRounds = 15;
constexpr auto kShortest = std::chrono::milliseconds(2);

using Bytes = std::vector<unsigned char, aligned_allocator<unsigned char, 64>>;

// Ordinary numbers of any type when read as such: no NaN and no subnormal,
// which some processors treat at a different speed.
void fill(Bytes& bytes, ElementType type) {
  const bool isComplex =
      type == ElementType::kComplex64 || type == ElementType::kComplex128;
  const size_t elementBytes =
      internal::elementBytes(type) / (isComplex ? 2 : 1);
  for (size_t i = 0; i < bytes.size(); i++) {
    const bool top = i % elementBytes == elementBytes - 1;
    bytes[i] = static_cast<unsigned char>(top ? 0x3f : 0x80 + i % 101);
  }
}

double seconds(const std::function<void()>& work, int times) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < times; i++) {
    work();
  }
  const std::chrono::duration<double> spent =
      std::chrono::steady_clock::now() - start;
  return spent.count() / times;
}

// How often to repeat `work` so that the clock's resolution does not matter.
int timesFor(const std::function<void()>& work) {
  const double once = std::max(seconds(work, 3), 1e-9);
  const std::chrono::duration<double> shortest = kShortest;
  return std::max(1, static_cast<int>(shortest.count() / once));
}

double leastRatioOf(ElementType type, Reduction reduction) {
  const bool half =
      type == ElementType::kFloat16 || type == ElementType::kBfloat16;
  const bool byteProduct =
      internal::elementBytes(type) == 1 && reduction == Reduction::kProduct;
  return half ? 0.5 : byteProduct ? 0.6 : 0.8;
}

}  // namespace

bool Measurement::reaches(const Subject& subject) const {
  return ratio() >= subject.leastRatio && speedup() >= subject.leastSpeedup;
}

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (size_t t = 1; t < internal::kElementTypes; t++) {
    for (const Reduction reduction : {Reduction::kSum, Reduction::kProduct,
                                      Reduction::kMin, Reduction::kMax}) {
      const auto type = static_cast<ElementType>(t);
      if (internal::kernelFor(type, reduction) == nullptr) {
        continue;
      }
      const bool half =
          type == ElementType::kFloat16 || type == ElementType::kBfloat16;
      all.push_back({std::string(internal::nameOf(type)) + "_" +
                         internal::nameOf(reduction),
                     type, reduction, leastRatioOf(type, reduction),
                     half ? 10.0 : 0.0});
    }
  }
  return all;
}

Measurement measure(const Subject& subject) {
  const size_t elementBytes = internal::elementBytes(subject.type);
  const size_t elements = kBytes / elementBytes;
  Bytes a(kBytes), b(kBytes), c(kBytes);
  // Half as much again, so that memcpy touches as many bytes in all.
  Bytes from(kBytes / 2 * 3), to(kBytes / 2 * 3);
  for (Bytes* bytes : {&a, &b, &c, &from, &to}) {
    fill(*bytes, subject.type);
  }
  const auto kernel = internal::kernelFor(subject.type, subject.reduction);
  const auto loop = scalarLoop(subject.type, subject.reduction);
  const auto reduce = [&] {
    kernel(c.data(), a.data(), b.data(), elements, nullptr);
  };
  const auto scalar = [&] { loop(c.data(), a.data(), b.data(), elements); };
  const auto copy = [&] { std::memcpy(to.data(), from.data(), from.size()); };

  const int reduceTimes = timesFor(reduce);
  const int copyTimes = timesFor(copy);
  const int scalarTimes = loop == nullptr ? 0 : timesFor(scalar);
  std::vector<double> reduced, copied, looped;
  for (int round = 0; round < kRounds; round++) {
    copied.push_back(seconds(copy, copyTimes));
    reduced.push_back(seconds(reduce, reduceTimes));
    if (loop != nullptr) {
      looped.push_back(seconds(scalar, scalarTimes));
    }
  }
  Measurement result;
  result.bytesTouched = 3 * kBytes;
  result.kernelSeconds = support::median(reduced);
  result.memcpySeconds = support::median(copied);
  result.scalarSeconds = loop == nullptr ? 0 : support::median(looped);
  return result;
}

std::string describeSpeedup(const Subject& subject, const Measurement& result) {
  if (result.scalarSeconds == 0) {
    return "";
  }
  char text[80];
  std::snprintf(text, sizeof(text), " scalar x %.1f (at least %.0f) ",
                result.speedup(), subject.leastSpeedup);
  return text;
}

}  // namespace gloo::micro
