// Whole small files: read, replace atomically, lock, and wait for changes.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gloo/common/deadline.h"
#include "gloo/config.h"
#include "rendezvous/socket.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// The contents; nothing if there is no such file. Throws IoException.
std::optional<std::vector<char>> readFile(const std::string& path);

// Readers see the old contents or the new, never a mixture, also if this
// process is killed. Throws IoException naming the errno and the remedy, and
// InvalidOperationException for more bytes than readFile() takes.
void replaceFile(const std::string& directory, const std::string& path,
                 std::span<const char> data);

// Held until destruction; excludes threads and processes.
class FileLock {
 public:
  // Throws TimeoutException.
  FileLock(const std::string& path, Deadline deadline);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  UniqueFd fd_;
};

// Wakes up when a file has been renamed into a directory. Where the kernel
// cannot tell (a network file system, or no inotify watches left), its pauses
// follow the cost of a look: about 5% of a core, at least 1 ms.
class DirectoryWatch {
 public:
  DirectoryWatch(const std::string& directory, bool remote);

  // Sleeps until something may have changed, at most until the deadline.
  // `lookCost` is what the caller's last look took.
  void sleep(std::chrono::nanoseconds lookCost, Deadline deadline);

 private:
  UniqueFd inotify_;
  bool reliable_ = false;
};

// Whether other hosts can change the directory behind the kernel's back.
bool isNetworkFileSystem(const std::string& directory);

}  // namespace rendezvous
GLOO_NAMESPACE_END
