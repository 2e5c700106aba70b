// Ranks as forked processes, for tests that kill, stop or watch them. Each
// child has a line of text to its parent and one back, so that nothing needs a
// sleep to be in step: a child says what it has reached, the parent waits for
// that.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace test {

// Sanitizers make everything slower: bounds of what is promised are multiplied
// by this.
int slowness();

// The same for limits that only guard against hanging, where the whole machine
// may be slow too: times GLOO_TEST_TIME_SCALE (1).
int patience();

// How long to wait for what, unless it hangs, has happened within `limit`: that
// times patience(), but less than ctest gives a test (`dev`: 180 s, in a guest
// 300 s), which would end it and not say whose rank hangs.
std::chrono::milliseconds hangLimit(std::chrono::milliseconds limit);

// CLOCK_MONOTONIC, the same for all processes of the host.
std::chrono::nanoseconds now();

// The child's side. One thread.
class Child {
 public:
  Child(int rank, int size, int in, int out)
      : rank(rank), size(size), in_(in), out_(out) {}

  const int rank;
  const int size;

  // One line to the parent; newlines in it are replaced.
  void say(const std::string& line);
  // The parent's next line. Ends the process when the parent is gone.
  std::string hear();

 private:
  int in_;
  int out_;
  std::string buffered_;
};

struct Outcome {
  bool finished = false;  // false: was still running at the limit, and killed
  int status = 0;         // as waitpid gives it
  bool exitedWith(int code) const;
  bool killedBy(int signal) const;
  std::string str() const;
};

// Not thread-safe. REQUIRES that the calling process has no other threads that
// hold locks which the children need.
class ProcessGroup {
 public:
  // What a child does: it exits with 0 when this returns and no expectation
  // of its failed, with 1 otherwise (also when it throws; the text goes to
  // stderr).
  using Body = std::function<void(Child&)>;

  ProcessGroup(int size, const Body& body);
  // Kills what still runs. Fails the test, if nothing has yet, for each child
  // that it has neither killed nor joined: how that ends is part of it.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int size() const { return static_cast<int>(members_.size()); }
  pid_t pid(int rank) const { return members_[rank].pid; }
  // After SIGSTOP none of its threads runs any more.
  void signal(int rank, int number);

  void tell(int rank, const std::string& line);
  void tellAll(const std::string& line);

  // The next line of this child; empty when it ended or said nothing within
  // the limit. (Here and below it is a hangLimit.)
  std::string hear(int rank, std::chrono::milliseconds limit);
  // Fails the test unless the next line of the child is `line`.
  void expect(int rank, const std::string& line);
  void expectAll(const std::string& line);

  // Waits for the end of one child, all of them within the limit.
  Outcome join(int rank, std::chrono::milliseconds limit);
  // Fails the test unless the child exits with 0, or all remaining ones.
  void expectEnd(int rank, std::chrono::milliseconds limit);
  void joinAll(std::chrono::milliseconds limit = std::chrono::seconds(60));

 private:
  struct Member {
    pid_t pid = -1;
    int pidfd = -1;
    int in = -1;   // the child's lines
    int out = -1;  // ours
    std::string buffered;
    bool joined = false;
    bool killed = false;  // by the test
  };
  void start(int rank, const Body& body);
  Outcome joinUntil(int rank, std::chrono::nanoseconds until);
  void expectEndUntil(int rank, std::chrono::nanoseconds until);
  static void closeFds(Member& member);

  std::vector<Member> members_;
};

}  // namespace test
GLOO_NAMESPACE_END
