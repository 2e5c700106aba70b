// How our programs answer a command line: help with status 0, a bad line with
// one line that says what is wrong and status 2, an error of the run with
// status 1.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>

namespace command_line {

// The text is one line for the user.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// --help: print the text and succeed.
struct HelpRequest {
  std::string text;
};

// The status, unless what was printed has nowhere to go (a full disk, say: the
// error may be an earlier call's, so errno does not tell).
inline int printed(const char* program, int status) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout) {
    return status;
  }
  std::fprintf(stderr, "%s: not all output could be written to stdout\n",
               program);
  return status == 0 ? 1 : status;
}

// A program that was started without its standard descriptors must not give
// their numbers to sockets: what it prints would go there. Each is taken by
// what it cannot be used for, so that printing fails.
inline void keepStandardDescriptors() {
  for (int fd = 0; fd <= 2; fd++) {
    if (::fcntl(fd, F_GETFD) < 0) {
      ::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);  // takes the lowest
    }
  }
}

// What body() returns, or the status of what it throws, which is told.
template <typename Body>
int run(const char* program, const Body& body) {
  keepStandardDescriptors();
  try {
    return printed(program, body());
  } catch (const HelpRequest& help) {
    std::fputs(help.text.c_str(), stdout);
    return printed(program, 0);
  } catch (const UsageError& error) {
    std::fprintf(stderr, "%s: %s (--help lists the options)\n", program,
                 error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program, error.what());
    return 1;
  }
}

}  // namespace command_line
