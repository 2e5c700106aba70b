// What a forked child has of the library: nothing.
#include "transport/base/fork.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "gloo/common/error.h"
#include "transport/base/socket.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using transport::base::Origin;
using transport::base::UniqueFd;

bool isOpen(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

UniqueFd open() { return UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)); }

// The child's exit code: 0 when `body` is true there.
bool holdsInChild(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(body() ? 0 : 1);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

TEST(Fork, TheChildClosesWhatItInherited) {
  UniqueFd fd = open();
  UniqueFd moved = open();
  const int number = moved.get();
  const UniqueFd target = std::move(moved);
  EXPECT_TRUE(
      holdsInChild([&] { return !isOpen(fd.get()) && !isOpen(number); }));
  EXPECT_TRUE(isOpen(fd.get()));
  EXPECT_TRUE(isOpen(number));
}

TEST(Fork, AReleasedDescriptorIsTheCallers) {
  UniqueFd fd = open();
  const int number = fd.release();
  EXPECT_TRUE(holdsInChild([&] { return isOpen(number); }));
  ::close(number);
}

TEST(Fork, AnInheritedOwnerLeavesANewOwnersDescriptorAlone) {
  UniqueFd fd = open();
  EXPECT_TRUE(holdsInChild([&] {
    const UniqueFd fresh = open();
    const bool same = fresh.get() == fd.get();  // the lowest free number
    fd.reset();
    return same && isOpen(fresh.get());
  }));
}

TEST(Fork, GrandchildrenDoNotKeepTheChildsDescriptors) {
  EXPECT_TRUE(holdsInChild([&] {
    const UniqueFd fd = open();
    return holdsInChild([&] { return !isOpen(fd.get()); }) && isOpen(fd.get());
  }));
}

TEST(Fork, InheritedObjectsSayWhatIsWrong) {
  const Origin origin;
  EXPECT_FALSE(origin.inherited());
  EXPECT_NO_THROW(origin.check("context"));
  EXPECT_TRUE(holdsInChild([&] {
    try {
      origin.check("context");
    } catch (const InvalidOperationException& error) {
      const std::string text = error.what();
      return origin.inherited() && !Origin().inherited() &&
             text.find("context was created before fork()") !=
                 std::string::npos;
    }
    return false;
  }));
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
