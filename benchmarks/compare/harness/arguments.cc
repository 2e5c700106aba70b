#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "measure.h"
#include "page.h"
#include "values.h"

namespace measure {
namespace {

constexpr char kUsage[] =
    "usage: PROGRAM --directory DIR [--rank R --size P] [--mode MODE]\n"
    "  [--transport tcp|shm|ibverbs] [--device NAME] [--collectives "
    "NAME,...]\n"
    "  [--sizes BYTES,...] [--offset BYTES] [--budget MILLISECONDS]\n"
    "One rank of a measured job; compare.py starts them.\n";

unsigned long long number(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const auto value = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || errno != 0 || text[0] == '-') {
    throw std::runtime_error("'" + text + "' is not a number");
  }
  return value;
}

// A rank, or how many there are.
int rankNumber(const std::string& name, const std::string& value, int highest) {
  const auto wanted = number(value);
  if (wanted > static_cast<unsigned long long>(highest)) {
    throw std::runtime_error(name + " " + value + ": at most " +
                             std::to_string(highest));
  }
  return static_cast<int>(wanted);
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

void set(Arguments& arguments, const std::string& name,
         const std::string& value) {
  if (name == "--rank") {
    arguments.rank = rankNumber(name, value, kMaxRanks - 1);
  } else if (name == "--size") {
    arguments.size = rankNumber(name, value, kMaxRanks);
  } else if (name == "--directory") {
    arguments.directory = value;
  } else if (name == "--mode") {
    arguments.mode = value;
  } else if (name == "--transport") {
    arguments.transport = value;
  } else if (name == "--device") {
    arguments.device = value;
  } else if (name == "--budget") {
    arguments.budget = double(number(value)) / 1000;
  } else if (name == "--offset") {
    arguments.offset = number(value);
    if (arguments.offset % sizeof(float) != 0) {
      throw std::runtime_error("--offset is not a multiple of 4");
    }
  } else if (name == "--collectives") {
    arguments.collectives = split(value);
  } else if (name == "--sizes") {
    for (const auto& part : split(value)) {
      arguments.sizes.push_back(number(part));
      if (arguments.sizes.back() == 0) {
        throw std::runtime_error(
            "--sizes: there is nothing to measure at 0 bytes; give 1 or more");
      }
    }
  } else {
    throw std::runtime_error("unknown option '" + name + "'");
  }
}

Arguments parseAll(int argc, char** argv,
                   const std::vector<std::string>& modes) {
  Arguments arguments;
  arguments.transport = "tcp";
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 >= argc) {
      throw std::runtime_error(std::string(argv[i]) + " needs a value");
    }
    set(arguments, argv[i], argv[i + 1]);
  }
  if (arguments.directory.empty()) {
    throw std::runtime_error("--directory is missing");
  }
  if (!arguments.mode.empty() &&
      std::find(modes.begin(), modes.end(), arguments.mode) == modes.end()) {
    throw std::runtime_error("--mode: unknown mode '" + arguments.mode + "'");
  }
  if (arguments.collectives.empty()) {
    arguments.collectives = {"allreduce"};
  }
  for (const auto& name : arguments.collectives) {
    if (!isCollective(name)) {
      throw std::runtime_error("unknown collective '" + name + "'");
    }
  }
  if (arguments.sizes.empty()) {
    arguments.sizes = {4, 1024, 65536, 1048576};
  }
  return arguments;
}

}  // namespace

Arguments parse(int argc, char** argv, const std::vector<std::string>& modes) {
  if (argc == 2 && std::string(argv[1]) == "--help") {
    std::fputs(kUsage, stdout);
    std::exit(std::fflush(stdout) == 0 ? 0 : 1);
  }
  try {
    return parseAll(argc, argv, modes);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    std::exit(2);
  }
}

}  // namespace measure
