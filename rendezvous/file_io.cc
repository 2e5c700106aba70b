#include "rendezvous/file_io.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <random>
#include <thread>

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

[[noreturn]] void throwErrno(const char* what, const std::string& path,
                             int error) {
  const char* remedy = "";
  if (error == ENOSPC || error == EDQUOT) {
    remedy = "; free some space or choose another directory";
  } else if (error == EACCES || error == EPERM || error == EROFS) {
    remedy = "; all ranks need permission to write there";
  } else if (error == ENOENT || error == ENOTDIR) {
    remedy = "; the directory has disappeared";
  } else if (error == EMFILE || error == ENFILE) {
    remedy = "; see ulimit -n";
  }
  throw IoException(MakeString("file store: cannot ", what, " ", path, ": ",
                               errnoText(error), remedy));
}

// Unique among all processes and threads that may share the directory.
std::string temporaryName(const std::string& directory) {
  static std::atomic<uint64_t> counter{0};
  thread_local std::random_device random;
  return MakeString(directory, "/.tmp-", ::getpid(), "-", counter++, "-",
                    random());
}

// Of a value. More is neither read nor written.
constexpr int64_t kMaxBytes = int64_t{1} << 30;

// Neither a device nor a forgotten disk image is anybody's value.
void checkIsValue(const struct stat& status, const std::string& path) {
  if (!S_ISREG(status.st_mode)) {
    throw IoException(
        MakeString("file store: cannot read ", path, ": not a regular file"));
  }
  if (status.st_size > kMaxBytes) {
    throw IoException(MakeString("file store: cannot read ", path, ": it has ",
                                 status.st_size, " bytes, more than ",
                                 kMaxBytes));
  }
}

// 0 or errno. Throws IoException for what is no value.
int readOpened(int fd, const std::string& path, std::vector<char>* data) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    return errno;
  }
  checkIsValue(status, path);
  constexpr size_t kStep = 4096;
  for (;;) {
    const size_t have = data->size();
    data->resize(have + kStep);
    const ssize_t got = ::read(fd, data->data() + have, kStep);
    if (got < 0 && errno != EINTR) {
      return errno;
    }
    data->resize(have + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) {
      return 0;
    }
  }
}

// 0 or errno.
int writeAll(int fd, std::span<const char> data) {
  size_t done = 0;
  while (done < data.size()) {
    const ssize_t wrote = ::write(fd, data.data() + done, data.size() - done);
    if (wrote < 0 && errno != EINTR) {
      return errno;
    }
    done += static_cast<size_t>(std::max<ssize_t>(wrote, 0));
  }
  return 0;
}

}  // namespace

std::optional<std::vector<char>> readFile(const std::string& path) {
  // ESTALE: another host has replaced the file (NFS), so the name means a new
  // one by now.
  constexpr int kTries = 10;
  for (int tries = 1;; tries++) {
    // Not blocking: what lies there may be a pipe.
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const int opened = fd ? 0 : errno;
    if (opened == ENOENT) {
      return std::nullopt;
    }
    std::vector<char> data;
    const int error = fd ? readOpened(fd.get(), path, &data) : opened;
    if (error == 0) {
      return data;
    }
    if (error != ESTALE || tries == kTries) {
      throwErrno(opened != 0 ? "open" : "read", path, error);
    }
  }
}

void replaceFile(const std::string& directory, const std::string& path,
                 std::span<const char> data) {
  if (data.size() > kMaxBytes) {
    throw InvalidOperationException(
        MakeString("file store: cannot write ", path, ": the value has ",
                   data.size(), " bytes, more than ", kMaxBytes));
  }
  const std::string temporary = temporaryName(directory);
  int error = 0;
  {
    // Not a UniqueFd: an error of close() is an error of the write (NFS).
    const int fd =
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
               S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
    if (fd < 0) {
      throwErrno("create", temporary, errno);
    }
    error = writeAll(fd, data);
    if (::close(fd) != 0 && error == 0 && errno != EINTR) {
      error = errno;
    }
  }
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) {
    error = errno;
  }
  if (error != 0) {
    ::unlink(temporary.c_str());
    throwErrno("write", path, error);
  }
}

FileLock::FileLock(const std::string& path, Deadline deadline)
    : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC,
                 S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP)) {
  if (!fd_) {
    throwErrno("open", path, errno);
  }
  milliseconds pause(1);
  while (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      throwErrno("lock", path, errno);
    }
    if (deadline.expired()) {
      throw TimeoutException(
          MakeString("Timed out: ", path,
                     " is locked by another process; is it stopped?"));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, milliseconds(10));
  }
}

FileLock::~FileLock() {
  // Explicitly: a forked child may hold a copy of the descriptor.
  ::flock(fd_.get(), LOCK_UN);
}

DirectoryWatch::DirectoryWatch(const std::string& directory, bool remote)
    : inotify_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  const bool watching =
      inotify_ &&
      ::inotify_add_watch(inotify_.get(), directory.c_str(), IN_MOVED_TO) >= 0;
  reliable_ = watching && !remote;
}

void DirectoryWatch::sleep(nanoseconds lookCost, Deadline deadline) {
  // One look in 20 times its own cost is 5% of a core. Even a reliable watch
  // is doubted from time to time: an event queue may overflow.
  constexpr nanoseconds kDoubt = std::chrono::seconds(1);
  const nanoseconds pause =
      reliable_ ? kDoubt
                : std::clamp<nanoseconds>(20 * lookCost, milliseconds(1),
                                          milliseconds(200));
  const auto now = Deadline::Clock::now();
  const Deadline until(std::min(deadline.at(), now + pause));
  if (!inotify_) {
    std::this_thread::sleep_until(until.at());
    return;
  }
  if (pollUntil(inotify_.get(), POLLIN, until)) {
    alignas(inotify_event) char events[4096];
    while (::read(inotify_.get(), events, sizeof events) > 0) {
    }
  }
}

bool isNetworkFileSystem(const std::string& directory) {
  struct statfs info {};
  if (::statfs(directory.c_str(), &info) != 0) {
    return true;
  }
  // NFS, SMB, CIFS, SMB2, FUSE, Lustre, GPFS, AFS, Ceph, 9p, OCFS2, BeeGFS,
  // GFS2: statfs(2) and the projects' sources.
  constexpr uint32_t kNetwork[] = {
      0x6969,     0x517B,     0xFF534D42, 0xFE534D42, 0x65735546,
      0x0BD00BD0, 0x47504653, 0x5346414F, 0x00C36400, 0x01021997,
      0x7461636F, 0x19830326, 0x01161970};
  return std::find(std::begin(kNetwork), std::end(kNetwork),
                   static_cast<uint32_t>(info.f_type)) != std::end(kNetwork);
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
