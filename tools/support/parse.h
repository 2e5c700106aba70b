// A command line that CLI11 takes apart. Only for the files that declare
// options: that header takes ten seconds to compile.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "tools/support/command_line.h"

namespace command_line {

// To check names of files: an empty one, of a shell's variable that is not set,
// would be none.
inline CLI::Validator isName() {
  return CLI::Validator(
      [](std::string& text) {
        return text.empty() ? std::string("its value is empty") : std::string();
      },
      "");
}

// Throws UsageError or HelpRequest.
inline void parse(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    throw HelpRequest{app.help()};
  } catch (const CLI::ParseError& e) {
    // There may be advice in further lines; the first says what is wrong.
    const std::string text = e.what();
    throw UsageError(text.substr(0, text.find('\n')));
  }
}

}  // namespace command_line
