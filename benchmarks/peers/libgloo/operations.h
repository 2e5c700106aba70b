#pragma once

#include <gloo/context.h>

#include <memory>

#include "measure.h"

// All algorithms for a collective of so many ranks.
std::vector<std::string> modesOf(const std::string& collective, int size);

// Throws for an algorithm that it does not have.
measure::Operation prepareOperation(
    const std::shared_ptr<gloo::Context>& context, const measure::Work& work,
    const std::string& mode);
