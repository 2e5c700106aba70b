// EventQueue's functions: an eventfd that counts what the queue holds.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "tests/support/fake_verbs/fabric.h"

GLOO_NAMESPACE_BEGIN
namespace test {

template <typename Event>
EventQueue<Event>::EventQueue() : fd(eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC)) {}

template <typename Event>
EventQueue<Event>::~EventQueue() {
  close(fd);
}

template <typename Event>
void EventQueue<Event>::push(const Event& event) {
  events.push_back(event);
  eventfd_write(fd, 1);
}

template <typename Event>
bool EventQueue<Event>::pop(std::mutex& mutex, Event* event) {
  eventfd_t one = 0;
  if (eventfd_read(fd, &one) != 0) {
    return false;
  }
  std::lock_guard<std::mutex> lock(mutex);
  if (events.empty()) {  // taken back meanwhile
    errno = EAGAIN;
    return false;
  }
  *event = events.front();
  events.pop_front();
  return true;
}

}  // namespace test
GLOO_NAMESPACE_END
