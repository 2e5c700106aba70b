// docs/algorithms.md and its pictures, made from the catalogue.
#pragma once

#include <map>
#include <string>

namespace gloo_simulate {

// Texts by file name, relative to the folder of algorithms.md.
std::map<std::string, std::string> documents();

// Writes them, and removes pictures of algorithms that are no more. Throws
// std::runtime_error with the file and why.
void writeDocuments(const std::string& folder);

}  // namespace gloo_simulate
