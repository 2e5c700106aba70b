#include "tests/support/process_group.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <stdexcept>

#include "gloo/common/string.h"
#include "tests/support/sanitized.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using std::chrono::milliseconds;

void writeLine(int fd, std::string line) {
  for (char& c : line) {
    if (c == '\n') {
      c = ' ';
    }
  }
  line += '\n';
  for (size_t at = 0; at < line.size();) {
    const ssize_t n = ::write(fd, line.data() + at, line.size() - at);
    if (n < 0 && errno != EINTR) {
      return;  // the other side is gone; its status tells
    }
    at += n > 0 ? static_cast<size_t>(n) : 0;
  }
}

// Moves the first whole line out of `buffered`.
bool takeLine(std::string& buffered, std::string* line) {
  const size_t end = buffered.find('\n');
  if (end == std::string::npos) {
    return false;
  }
  *line = buffered.substr(0, end);
  buffered.erase(0, end + 1);
  return true;
}

// Appends what can be read; false at the end of the file.
bool readSome(int fd, std::string& buffered) {
  char bytes[4096];
  const ssize_t n = ::read(fd, bytes, sizeof(bytes));
  if (n > 0) {
    buffered.append(bytes, static_cast<size_t>(n));
  }
  return n > 0 || (n < 0 && errno == EINTR);
}

// Readable before `until`, or now if that is over?
bool pollUntil(int fd, std::chrono::nanoseconds until) {
  while (true) {
    const auto left = std::max(until - now(), std::chrono::nanoseconds(0));
    pollfd p{fd, POLLIN, 0};
    const auto ms = std::chrono::ceil<milliseconds>(left);
    const int n = ::poll(&p, 1, static_cast<int>(ms.count()));
    if (n > 0 || left == left.zero()) {
      return n > 0;
    }
  }
}

int runBody(const ProcessGroup::Body& body, Child& child) {
  try {
    body(child);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rank %d: %s\n", child.rank, e.what());
    return 1;
  }
  std::fflush(nullptr);
  return ::testing::Test::HasFailure() ? 1 : 0;
}

}  // namespace

int slowness() {
#ifdef GLOO_TEST_SANITIZED
  return 5;
#else
  return 1;
#endif
}

std::chrono::nanoseconds now() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

int patience() {
  const char* scale = std::getenv("GLOO_TEST_TIME_SCALE");
  return slowness() * std::max(scale != nullptr ? std::atoi(scale) : 1, 1);
}

milliseconds hangLimit(milliseconds limit) {
  constexpr milliseconds kMost(150'000);
  return std::min(limit * patience(), kMost * (patience() / slowness()));
}

void Child::say(const std::string& line) { writeLine(out_, line); }

std::string Child::hear() {
  std::string line;
  while (!takeLine(buffered_, &line)) {
    if (!readSome(in_, buffered_)) {
      ::_exit(3);
    }
  }
  return line;
}

bool Outcome::exitedWith(int code) const {
  return finished && WIFEXITED(status) && WEXITSTATUS(status) == code;
}

bool Outcome::killedBy(int signal) const {
  return finished && WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

std::string Outcome::str() const {
  if (!finished) {
    return "still running at the limit";
  }
  return WIFSIGNALED(status)
             ? MakeString("killed by ", ::strsignal(WTERMSIG(status)))
             : MakeString("exit status ", WEXITSTATUS(status));
}

ProcessGroup::ProcessGroup(int size, const Body& body) : members_(size) {
  ::signal(SIGPIPE, SIG_IGN);
  std::fflush(nullptr);  // or each child would print it again
  for (int rank = 0; rank < size; rank++) {
    start(rank, body);
  }
}

void ProcessGroup::start(int rank, const Body& body) {
  int toChild[2];
  int toParent[2];
  if (::pipe2(toChild, O_CLOEXEC) != 0 || ::pipe2(toParent, O_CLOEXEC) != 0) {
    throw std::runtime_error("pipe2 failed");
  }
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    // A test that is killed must not leave ranks behind.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
      ::_exit(3);
    }
    // A pipe that a sibling holds too would hide this child's end.
    for (Member& member : members_) {
      closeFds(member);
    }
    ::close(toChild[1]);
    ::close(toParent[0]);
    Child child(rank, size(), toChild[0], toParent[1]);
    ::_exit(runBody(body, child));
  }
  ::close(toChild[0]);
  ::close(toParent[1]);
  if (pid < 0) {
    throw std::runtime_error("fork failed");
  }
  Member& member = members_[rank];
  member.pid = pid;
  member.pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  member.in = toParent[0];
  member.out = toChild[1];
}

ProcessGroup::~ProcessGroup() {
  const bool known =
      ::testing::Test::HasFailure() || std::uncaught_exceptions() > 0;
  for (int rank = 0; rank < size(); rank++) {
    if (members_[rank].pid > 0 && !members_[rank].joined) {
      EXPECT_TRUE(members_[rank].killed || known)
          << "nobody has asked how rank " << rank << " ends";
      ::kill(members_[rank].pid, SIGKILL);
      join(rank, std::chrono::seconds(10));
    }
    closeFds(members_[rank]);
  }
}

void ProcessGroup::closeFds(Member& member) {
  for (int* fd : {&member.pidfd, &member.in, &member.out}) {
    if (*fd >= 0) {
      ::close(*fd);
      *fd = -1;
    }
  }
}

void ProcessGroup::signal(int rank, int number) {
  const pid_t pid = members_[rank].pid;
  ::kill(pid, number);
  members_[rank].killed |= number == SIGKILL;
  if (number == SIGSTOP) {
    // One thread takes the signal and stops the others: until it has a
    // processor, they go on.
    siginfo_t info;
    ::waitid(P_PID, static_cast<id_t>(pid), &info,
             WSTOPPED | WEXITED | WNOWAIT);
  }
}

void ProcessGroup::tell(int rank, const std::string& line) {
  writeLine(members_[rank].out, line);
}

void ProcessGroup::tellAll(const std::string& line) {
  for (int rank = 0; rank < size(); rank++) {
    tell(rank, line);
  }
}

std::string ProcessGroup::hear(int rank, milliseconds limit) {
  Member& member = members_[rank];
  const auto until = now() + hangLimit(limit);
  std::string line;
  while (!takeLine(member.buffered, &line)) {
    if (!pollUntil(member.in, until) || !readSome(member.in, member.buffered)) {
      return std::string();
    }
  }
  return line;
}

void ProcessGroup::expect(int rank, const std::string& line) {
  const std::string heard = hear(rank, std::chrono::seconds(60));
  EXPECT_EQ(heard, line) << "from rank " << rank;
}

void ProcessGroup::expectAll(const std::string& line) {
  for (int rank = 0; rank < size(); rank++) {
    expect(rank, line);
  }
}

Outcome ProcessGroup::join(int rank, milliseconds limit) {
  return joinUntil(rank, now() + hangLimit(limit));
}

Outcome ProcessGroup::joinUntil(int rank, std::chrono::nanoseconds until) {
  Member& member = members_[rank];
  Outcome outcome;
  if (member.joined) {
    return outcome;
  }
  outcome.finished = pollUntil(member.pidfd, until);
  if (!outcome.finished) {
    ::kill(member.pid, SIGKILL);
  }
  ::waitpid(member.pid, &outcome.status, 0);
  member.joined = true;
  return outcome;
}

void ProcessGroup::expectEnd(int rank, milliseconds limit) {
  expectEndUntil(rank, now() + hangLimit(limit));
}

void ProcessGroup::joinAll(milliseconds limit) {
  const auto until = now() + hangLimit(limit);
  for (int rank = 0; rank < size(); rank++) {
    if (!members_[rank].joined) {
      expectEndUntil(rank, until);
    }
  }
}

void ProcessGroup::expectEndUntil(int rank, std::chrono::nanoseconds until) {
  const Outcome outcome = joinUntil(rank, until);
  EXPECT_TRUE(outcome.exitedWith(0))
      << "rank " << rank << ": " << outcome.str();
}

}  // namespace test
GLOO_NAMESPACE_END
