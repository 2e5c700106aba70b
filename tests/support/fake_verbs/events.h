// EventQueue's functions: a pipe holds a byte for each event.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "tests/support/fake_verbs/fabric.h"

GLOO_NAMESPACE_BEGIN
namespace test {

template <typename Event>
EventQueue<Event>::EventQueue() {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) {
    std::abort();
  }
  fd = ends[0];
  writer = ends[1];
}

template <typename Event>
EventQueue<Event>::~EventQueue() {
  end();
  close(fd);
}

template <typename Event>
void EventQueue<Event>::end() {
  if (writer >= 0) {
    close(std::exchange(writer, -1));
  }
}

template <typename Event>
void EventQueue<Event>::push(const Event& event) {
  if (writer >= 0 && write(writer, "e", 1) == 1) {
    events.push_back(event);
  }
}

template <typename Event>
bool EventQueue<Event>::pop(std::mutex& mutex, Event* event) {
  char byte = 0;
  const ssize_t n = read(fd, &byte, 1);
  if (n <= 0) {
    errno = n == 0 ? EIO : errno;
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

template <typename Event>
template <typename Which>
void EventQueue<Event>::forget(const Which& which) {
  const auto gone = std::remove_if(events.begin(), events.end(), which);
  for (auto left = events.end() - gone; left > 0; left--) {
    char byte = 0;
    if (read(fd, &byte, 1) != 1) {
      break;
    }
  }
  events.erase(gone, events.end());
}

}  // namespace test
GLOO_NAMESPACE_END
