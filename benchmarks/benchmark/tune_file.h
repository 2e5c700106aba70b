// The file that --tune writes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "benchmarks/benchmark/options.h"

namespace benchmark {

// Throws std::runtime_error if options.tuneFile is there and holds something
// else, or cannot be written. Before anything is connected: what the other
// ranks say then is only that this one left.
void checkTuneFile(const Options& options);

// One without networks if there is none. Throws std::runtime_error if it holds
// something else.
nlohmann::json readTuneFile(const std::string& path);

// Throws std::runtime_error if it cannot be written.
void writeTuneFile(const std::string& path, const nlohmann::json& content);

// The network of these options in it, made if it is not there.
nlohmann::json& networkOf(nlohmann::json& content, const Options& options);

}  // namespace benchmark
