// Exceptions of the library. InvalidOperationException: the caller's fault,
// thrown before any I/O. IoException and its subclasses: the world's fault;
// the context they came from is closed afterwards.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>

#include "gloo/common/string.h"
#include "gloo/config.h"

#define GLOO_ERROR_MSG(...) \
  ::gloo::MakeString("[", __FILE__, ":", __LINE__, "] ", __VA_ARGS__)

#define GLOO_THROW(...) throw ::gloo::Exception(GLOO_ERROR_MSG(__VA_ARGS__))
#define GLOO_THROW_INVALID_OPERATION_EXCEPTION(...) \
  throw ::gloo::InvalidOperationException(GLOO_ERROR_MSG(__VA_ARGS__))
#define GLOO_THROW_IO_EXCEPTION(...) \
  throw ::gloo::IoException(GLOO_ERROR_MSG(__VA_ARGS__))

GLOO_NAMESPACE_BEGIN

// As a timeout: wait without limit.
constexpr std::chrono::milliseconds kNoTimeout{0};

struct GLOO_API Exception : public std::runtime_error {
  Exception() = delete;
  explicit Exception(const std::string& message);
  ~Exception() override;  // out of line: one type_info for all libraries
};

// A precondition that the caller can check was violated; nothing was sent.
struct GLOO_API InvalidOperationException : public Exception {
  explicit InvalidOperationException(const std::string& message);
  ~InvalidOperationException() override;
};

// A peer, the network, the store or a limit of the system failed.
struct GLOO_API IoException : public Exception {
  explicit IoException(const std::string& message);
  ~IoException() override;
};

// The deadline passed; the text contains "Timed out" and names the rank that
// was waited for.
struct GLOO_API TimeoutException : public IoException {
  explicit TimeoutException(const std::string& message);
  ~TimeoutException() override;
};

// The process of a rank ended, or the connection to it was lost.
struct GLOO_API PeerLostException : public IoException {
  explicit PeerLostException(const std::string& message);
  ~PeerLostException() override;
};

// Ranks disagree: about a message's size, an operation, a count, a type.
struct GLOO_API MismatchException : public IoException {
  explicit MismatchException(const std::string& message);
  ~MismatchException() override;
};

// Ranks could not find each other through the store.
struct GLOO_API RendezvousException : public IoException {
  explicit RendezvousException(const std::string& message);
  ~RendezvousException() override;
};

GLOO_NAMESPACE_END
