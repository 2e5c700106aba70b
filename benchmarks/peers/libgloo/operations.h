#pragma once

#include <gloo/context.h>

#include <memory>

#include "measure.h"

// The usual algorithms for a collective. An allreduce can be "ring" and "bcube"
// too.
std::vector<std::string> modesOf(const std::string& collective);

// Throws for an algorithm that it does not have.
measure::Operation prepareOperation(
    const std::shared_ptr<gloo::Context>& context, const measure::Work& work,
    const std::string& mode);
