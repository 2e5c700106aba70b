#pragma once

#include <gloo/context.h>

#include <memory>

#include "measure.h"

std::vector<std::string> modesOf(const std::string& collective);

measure::Operation prepareOperation(
    const std::shared_ptr<gloo::Context>& context, const measure::Work& work,
    const std::string& mode);
