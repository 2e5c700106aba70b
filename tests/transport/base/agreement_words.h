// Words for an Agreement to compare.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "gloo/internal/check.h"
#include "transport/base/agreement.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

using Conflict = std::optional<Agreement::Conflict>;

constexpr uint64_t kTag = 7;

inline uint64_t wordOf(uint8_t operation) {
  internal::CheckFields fields;
  fields.operation = operation;
  return fields.pack();
}

// Rank 0's, which no other rank has contradicted when it begins.
inline uint64_t begin(Agreement& agreement, uint64_t tag, uint64_t word) {
  Conflict conflict;
  const uint64_t said = agreement.begin(tag, word, &conflict);
  EXPECT_FALSE(conflict.has_value());
  return said;
}

}  // namespace transport::base
GLOO_NAMESPACE_END
