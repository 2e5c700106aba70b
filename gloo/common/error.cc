#include "gloo/common/error.h"

GLOO_NAMESPACE_BEGIN

Exception::Exception(const std::string& message)
    : std::runtime_error(message) {}
Exception::~Exception() = default;

InvalidOperationException::InvalidOperationException(const std::string& message)
    : Exception(message) {}
InvalidOperationException::~InvalidOperationException() = default;

IoException::IoException(const std::string& message) : Exception(message) {}
IoException::~IoException() = default;

TimeoutException::TimeoutException(const std::string& message)
    : IoException(message) {}
TimeoutException::~TimeoutException() = default;

PeerLostException::PeerLostException(const std::string& message)
    : IoException(message) {}
PeerLostException::~PeerLostException() = default;

MismatchException::MismatchException(const std::string& message)
    : IoException(message) {}
MismatchException::~MismatchException() = default;

RendezvousException::RendezvousException(const std::string& message)
    : IoException(message) {}
RendezvousException::~RendezvousException() = default;

GLOO_NAMESPACE_END
