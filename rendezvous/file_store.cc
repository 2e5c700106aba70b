#include "gloo/rendezvous/file_store.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "gloo/common/error.h"
#include "rendezvous/decimal.h"
#include "rendezvous/file_io.h"
#include "rendezvous/file_names.h"
#include "rendezvous/operation_deadline.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

namespace {

std::string checkDirectory(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    const int error = errno;
    throw InvalidOperationException(
        MakeString("FileStore: directory ", path, ": ", errnoText(error),
                   "; create it, on a file system that all ranks share"));
  }
  if (!S_ISDIR(info.st_mode)) {
    throw InvalidOperationException(
        MakeString("FileStore: ", path, " is not a directory"));
  }
  if (::access(path.c_str(), R_OK | W_OK | X_OK) != 0) {
    const int error = errno;
    throw IoException(MakeString("FileStore: directory ", path,
                                 " cannot be written: ", errnoText(error)));
  }
  // The process may change its working directory later.
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  if (error) {
    throw InvalidOperationException(
        MakeString("FileStore: directory ", path, ": ", error.message(),
                   "; give it as an absolute path"));
  }
  return absolute.string();
}

std::string lockPath(const std::string& directory) {
  return directory + "/.lock";
}

}  // namespace

FileStore::FileStore(const std::string& path)
    : directory_(checkDirectory(path)),
      remote_(isNetworkFileSystem(directory_)) {}

FileStore::~FileStore() = default;

std::string FileStore::str() const { return "file store " + directory_; }

std::string FileStore::pathOf(const std::string& key) const {
  return directory_ + "/" + fileNameOfKey(key);
}

void FileStore::set(const std::string& key, const std::vector<char>& data) {
  replaceFile(directory_, pathOf(key), data);
}

void FileStore::multi_set(const std::vector<std::string>& keys,
                          const std::vector<std::vector<char>>& values) {
  if (keys.size() != values.size()) {
    throw InvalidOperationException(MakeString(
        "multi_set: ", keys.size(), " keys but ", values.size(), " values"));
  }
  for (size_t i = 0; i < keys.size(); i++) {
    set(keys[i], values[i]);
  }
}

void FileStore::append(const std::string& key, const std::vector<char>& value) {
  const FileLock lock(lockPath(directory_), operationDeadline());
  refresh();
  auto data = readFile(pathOf(key)).value_or(std::vector<char>());
  data.insert(data.end(), value.begin(), value.end());
  set(key, data);
}

int64_t FileStore::add(const std::string& key, int64_t value) {
  const FileLock lock(lockPath(directory_), operationDeadline());
  refresh();
  auto data = readFile(pathOf(key)).value_or(std::vector<char>());
  const int64_t sum = addToDecimal(data, value, key);
  set(key, data);
  return sum;
}

// NFS remembers what is not there, for up to a minute (nfs(5), acdirmax). To
// open the directory makes it ask whether that has changed: close-to-open
// consistency.
void FileStore::refresh() const {
  if (remote_) {
    const std::unique_ptr<DIR, int (*)(DIR*)> opened(
        ::opendir(directory_.c_str()), &::closedir);
  }
}

std::vector<std::optional<std::vector<char>>> FileStore::peek(
    const std::vector<std::string>& keys) {
  std::vector<std::optional<std::vector<char>>> found;
  found.reserve(keys.size());
  refresh();
  for (const auto& key : keys) {
    found.push_back(readFile(pathOf(key)));
  }
  return found;
}

bool FileStore::wait_any(const std::vector<std::string>& keys,
                         Deadline deadline) {
  std::vector<std::string> paths;
  paths.reserve(keys.size());
  for (const auto& key : keys) {
    paths.push_back(pathOf(key));
  }
  // Watch first, look afterwards: nothing can appear in between.
  DirectoryWatch watch(directory_, remote_);
  for (;;) {
    const auto begin = Deadline::Clock::now();
    refresh();
    for (const auto& path : paths) {
      if (::access(path.c_str(), F_OK) == 0) {
        return true;
      }
    }
    if (::access(directory_.c_str(), F_OK) != 0) {
      throw IoException(
          MakeString("FileStore: directory ", directory_, " has disappeared"));
    }
    if (deadline.expired()) {
      return false;
    }
    watch.sleep(Deadline::Clock::now() - begin, deadline);
  }
}

std::vector<std::string> FileStore::getAllKeyFilePaths() {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(
      ::opendir(directory_.c_str()), &::closedir);
  if (directory == nullptr) {
    throw IoException(MakeString("FileStore: cannot list ", directory_, ": ",
                                 errnoText(errno)));
  }
  std::vector<std::string> paths;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (isKeyFileName(entry->d_name)) {
      paths.push_back(directory_ + "/" + entry->d_name);
    }
  }
  return paths;
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
