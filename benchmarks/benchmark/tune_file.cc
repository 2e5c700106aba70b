#include "benchmarks/benchmark/tune_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace benchmark {

using nlohmann::json;

namespace {

// Whether what was measured can be put into it.
bool isNetwork(const json& network) {
  const auto isObject = [](const json& object, const char* name) {
    return object.value(name, json::object()).is_object();
  };
  return network.is_object() && isObject(network, "best") &&
         isObject(network, "direct") &&
         isObject(network.value("direct", json::object()), "most_bytes");
}

// It takes the file's place when it is complete.
std::string temporaryFor(const std::string& path) { return path + ".new"; }

}  // namespace

json readTuneFile(const std::string& path) {
  std::ifstream file(path);
  if (!file.is_open() && errno == ENOENT) {
    return {{"version", 1}, {"networks", json::array()}};
  }
  file.peek();  // tells of what opens and cannot be read, as a directory
  if (!file.is_open() || file.bad()) {
    throw std::runtime_error("--tune: cannot read " + path + ": " +
                             std::strerror(errno));
  }
  json content = json::parse(file, nullptr, false);
  if (!content.is_object() || content.value("version", json()) != 1 ||
      !content.contains("networks") || !content["networks"].is_array() ||
      !std::all_of(content["networks"].begin(), content["networks"].end(),
                   isNetwork)) {
    throw std::runtime_error("--tune: " + path +
                             " exists and is no tuning file; name another");
  }
  return content;
}

// A line per network: what ranks can agree on is 63 KiB.
void writeTuneFile(const std::string& path, const json& content) {
  const std::string temporary = temporaryFor(path);
  std::ofstream file(temporary);
  file << "{\"version\": 1, \"networks\": [";
  const char* separator = "\n";
  for (const json& network : content["networks"]) {
    file << separator << network.dump();
    separator = ",\n";
  }
  file << "\n]}\n";
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    throw std::runtime_error("cannot write " + path + ": " +
                             std::strerror(errno));
  }
}

json& networkOf(json& content, const Options& options) {
  for (json& network : content["networks"]) {
    if (network.is_object() && network.value("ranks", json()) == options.size &&
        network.value("transport", json()) == options.transport) {
      return network;
    }
  }
  content["networks"].push_back(
      {{"transport", options.transport}, {"ranks", options.size}});
  return content["networks"].back();
}

void checkTuneFile(const Options& options) {
  readTuneFile(options.tuneFile);
  // Nobody should measure for a minute to be told this.
  const std::string temporary = temporaryFor(options.tuneFile);
  if (!std::ofstream(temporary, std::ios::app).is_open()) {
    throw std::runtime_error("--tune: cannot write " + temporary + ": " +
                             std::strerror(errno));
  }
  std::remove(temporary.c_str());
}

}  // namespace benchmark
