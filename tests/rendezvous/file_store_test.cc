#include "gloo/rendezvous/file_store.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "gloo/common/error.h"
#include "rendezvous/file_io.h"
#include "rendezvous/file_names.h"
#include "tests/rendezvous/child_process.h"
#include "tests/rendezvous/store_kinds.h"
#include "tests/rendezvous/temporary_directory.h"

namespace gloo_test {

namespace {

using gloo::Deadline;
using gloo::rendezvous::DirectoryWatch;
using gloo::rendezvous::FileStore;
using std::chrono::milliseconds;

TEST(FileStoreTest, AMissingDirectoryIsTheCallersFault) {
  EXPECT_THROW(FileStore("/nonexistent/directory"),
               gloo::InvalidOperationException);
  TemporaryDirectory directory;
  const std::string file = directory.path() + "/file";
  std::ofstream(file) << "x";
  EXPECT_THROW(FileStore{file}, gloo::InvalidOperationException);
}

TEST(FileStoreTest, ADirectoryThatCannotBeWrittenIsNamed) {
  TemporaryDirectory directory;
  ::chmod(directory.path().c_str(), S_IRUSR | S_IXUSR);
  // The superuser may write everywhere, so a child gives that right away.
  ChildProcess child([&] {
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) {
      return 3;
    }
    try {
      FileStore store(directory.path());
    } catch (const gloo::IoException& error) {
      const std::string text = error.what();
      return text.find(directory.path()) != std::string::npos &&
                     text.find("denied") != std::string::npos
                 ? 0
                 : 1;
    }
    return 2;
  });
  EXPECT_EQ(child.wait(), 0);
}

// A quota of the process stands for the disk's end: both fail in write().
TEST(FileStoreTest, AFailedWriteIsAnErrorAndLeavesTheOldValue) {
  TemporaryDirectory directory;
  FileStore store(directory.path());
  store.set("k", bytesOf("old"));
  ChildProcess child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) {
      return 3;
    }
    try {
      store.set("k", std::vector<char>(5000, 'x'));
    } catch (const gloo::IoException& error) {
      return std::string(error.what()).find("cannot write") != std::string::npos
                 ? 0
                 : 1;
    }
    return 2;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(store.get("k"), bytesOf("old"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()),
                          std::filesystem::directory_iterator()),
            1);
}

TEST(FileStoreTest, WhatIsNoValueIsAnErrorAtOnce) {
  TemporaryDirectory directory;
  FileStore store(directory.path());
  store.set("k", {'x'});
  const std::string path = store.getAllKeyFilePaths().at(0);
  ASSERT_EQ(0, ::truncate(path.c_str(), off_t{1} << 40));
  EXPECT_THROW(store.get("k"), gloo::IoException);
  ASSERT_EQ(0, ::unlink(path.c_str()));
  ASSERT_EQ(0, ::mkfifo(path.c_str(), S_IRUSR | S_IWUSR));
  EXPECT_THROW(store.get("k"), gloo::IoException);
  ASSERT_EQ(0, ::unlink(path.c_str()));
  ASSERT_EQ(0, ::symlink("/dev/zero", path.c_str()));
  EXPECT_THROW(store.get("k"), gloo::IoException);
  ASSERT_EQ(0, ::unlink(path.c_str()));
  ASSERT_EQ(0, ::mkdir(path.c_str(), S_IRWXU));
  EXPECT_THROW(store.get("k"), gloo::IoException);
}

// (Not written: its pages are never looked at.)
TEST(FileStoreTest, AValueThatCouldNotBeReadIsNotWritten) {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/value";
  const size_t bytes = (size_t{1} << 30) + 1;
  void* const nothing =
      ::mmap(nullptr, bytes, PROT_READ,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(nothing, MAP_FAILED);
  try {
    gloo::rendezvous::replaceFile(directory.path(), path,
                                  {static_cast<const char*>(nothing), bytes});
    ADD_FAILURE() << "no exception";
  } catch (const gloo::InvalidOperationException& error) {
    EXPECT_NE(std::string(error.what()).find("bytes, more than"),
              std::string::npos)
        << error.what();
  }
  ::munmap(nothing, bytes);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(FileStoreTest, ReadersNeverSeeHalfAValue) {
  TemporaryDirectory directory;
  FileStore writer(directory.path());
  const std::vector<char> a(100000, 'a');
  const std::vector<char> b(70000, 'b');
  writer.set("k", a);
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    FileStore store(directory.path());
    while (!stop) {
      const auto value = store.get("k");
      ASSERT_TRUE(value == a || value == b);
    }
  });
  for (int i = 0; i < 200; i++) {
    writer.set("k", i % 2 == 0 ? b : a);
  }
  stop = true;
  reader.join();
}

TEST(FileStoreTest, WritersThatAreKilledLeaveNoHalfValue) {
  TemporaryDirectory directory;
  FileStore store(directory.path());
  store.set("k", std::vector<char>(200000, 'x'));
  for (int i = 0; i < 20; i++) {
    ChildProcess child([&] {
      FileStore mine(directory.path());
      mine.set("running", bytesOf("x"));
      for (;;) {
        mine.set("k", std::vector<char>(200000, 'x'));
      }
      return 0;
    });
    store.wait({"running"}, std::chrono::seconds(20));
    child.kill();
    EXPECT_EQ(store.get("k"), std::vector<char>(200000, 'x'));
  }
}

TEST(FileStoreTest, ARelativePathIsThatOfTheMomentItWasGiven) {
  TemporaryDirectory directory;
  ChildProcess child([&] {
    if (::chdir(directory.path().c_str()) != 0) {
      return 2;
    }
    FileStore store(".");
    if (::chdir("/") != 0) {
      return 2;
    }
    store.set("k", bytesOf("v"));
    return store.get("k") == bytesOf("v") ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(FileStore(directory.path()).get("k"), bytesOf("v"));
}

TEST(FileStoreTest, AllKeyFilesAreListedAndNoOthers) {
  TemporaryDirectory directory;
  FileStore store(directory.path());
  store.set("a/b", bytesOf("1"));
  store.add("n", 1);  // makes a lock file, too
  store.set(std::string(500, 'x'), bytesOf("2"));
  std::ofstream(directory.path() + "/README") << "not a key";
  const auto paths = store.getAllKeyFilePaths();
  EXPECT_EQ(paths.size(), 3U);
  for (const auto& path : paths) {
    EXPECT_EQ(path.rfind(directory.path() + "/", 0), 0U) << path;
    EXPECT_EQ(path.find('/', directory.path().size() + 1), std::string::npos);
  }
}

TEST(FileStoreTest, ADirectoryThatDisappearsEndsTheWait) {
  TemporaryDirectory directory;
  FileStore store(directory.path());
  std::filesystem::remove_all(directory.path());
  EXPECT_THROW(store.set("k", bytesOf("v")), gloo::IoException);
  EXPECT_THROW(store.wait({"k"}, std::chrono::seconds(20)), gloo::IoException);
}

TEST(FileStoreTest, ALockThatIsHeldIsWaitedForUntilTheDeadline) {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/lock";
  const gloo::rendezvous::FileLock held(path, Deadline());
  EXPECT_THROW(
      gloo::rendezvous::FileLock(path, Deadline::after(milliseconds(20))),
      gloo::TimeoutException);
}

// What happens on a network file system: the kernel tells nothing.
TEST(FileStoreTest, WithoutNotificationsLooksFollowTheirCost) {
  TemporaryDirectory directory;
  DirectoryWatch watch(directory.path(), /*remote=*/true);
  const auto begin = Deadline::Clock::now();
  watch.sleep(milliseconds(2), Deadline());
  EXPECT_GE(Deadline::Clock::now() - begin, milliseconds(39));
  watch.sleep(std::chrono::nanoseconds(0), Deadline::after(milliseconds(500)));
}

TEST(FileStoreTest, FileNamesStayShortAndInTheirDirectory) {
  for (const std::string& key :
       {std::string(), std::string("../x"), std::string(".."),
        std::string(5000, '/'), std::string("a\0b", 3)}) {
    const std::string name = gloo::rendezvous::fileNameOfKey(key);
    EXPECT_EQ(name.find('/'), std::string::npos);
    EXPECT_EQ(name.find('\0'), std::string::npos);
    EXPECT_LE(name.size(), 143U);
    EXPECT_TRUE(gloo::rendezvous::isKeyFileName(name));
  }
}

}  // namespace

}  // namespace gloo_test
