// Memory bound to one slot of one pair: what one side sends appears in the
// buffer that the other side created with the same slot.
#pragma once

#include <cstddef>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport {

// Created by Pair::createSendBuffer or createRecvBuffer; the receiver's memory
// is advertised once, at creation. Several sends may be in flight; each wait
// accounts for one, in the order of the sends. Thread-safe. Waits take the
// context's timeout and throw IoException. Does not own its memory. To be
// destroyed before its context: afterwards it can be destroyed, and nothing
// else.
class GLOO_API Buffer {
 public:
  Buffer(int slot, void* ptr, size_t size)
      : slot_(slot), ptr_(ptr), size_(size), debug_(false) {}
  virtual ~Buffer() = 0;

  // Log each send at level DEBUG.
  virtual void setDebug(bool debug) { debug_ = debug; }

  // Start to write [offset, offset + length) of this buffer to the peer's, at
  // byte roffset. EnforceNotMet when the range exceeds this buffer.
  virtual void send(size_t offset, size_t length, size_t roffset = 0) = 0;
  void send() { send(0, size_); }

  // Block until one more write of the peer's is complete.
  virtual void waitRecv() = 0;
  // Block until one more of this buffer's sends can be overwritten.
  virtual void waitSend() = 0;

 protected:
  const int slot_;
  void* const ptr_;
  const size_t size_;
  bool debug_;
};

}  // namespace transport
GLOO_NAMESPACE_END
