// Rows as a table and as JSON.
#pragma once

#include <string>
#include <vector>

#include "tools/gloo_simulate/sweep.h"

namespace gloo_simulate {

// "64 KiB", "1000 B".
std::string bytesText(size_t bytes);
// "5.12 us", "1.2 s".
std::string timeText(double seconds);

void printTable(const Options& options, const std::vector<Row>& rows);

// A list of objects with collective, algorithm, chosen, ranks, bytes,
// segment_bytes, time_us, bound_us, bound_term, ratio, rounds, busiest_bytes,
// messages. Throws std::runtime_error with the file and why.
void writeJson(const Options& options, const std::vector<Row>& rows);

// Throws std::runtime_error with the file and why.
void writeText(const std::string& file, const std::string& text);
// Throws what that would. Makes the file, if there is none.
void requireWritable(const std::string& file);

}  // namespace gloo_simulate
