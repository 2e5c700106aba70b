#include "benchmarks/benchmark/spawn.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include "benchmarks/benchmark/runner.h"
#include "tools/support/command_line.h"

namespace benchmark {
namespace {

[[noreturn]] void throwErrno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    const char* const set = std::getenv("TMPDIR");
    const std::string below = set != nullptr && *set != '\0' ? set : "/tmp";
    path_ = below + "/benchmark.XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) {
      throwErrno(("cannot make a directory in " + below +
                  " for the processes to meet in (TMPDIR says where)")
                     .c_str());
    }
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

sigset_t watchedSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) {
    sigaddset(&signals, number);
  }
  return signals;
}

// The ranks of the job. Errors come through one pipe, a short write each, so
// that the first one written is the first one read.
class Job {
 public:
  explicit Job(const Options& options) : options_(options) {
    if (pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) != 0) {
      throwErrno("pipe2");
    }
    const sigset_t signals = watchedSignals();
    sigprocmask(SIG_BLOCK, &signals, &formerMask_);
    // Of ignored ones, which may be inherited, nobody would be told.
    signal(SIGCHLD, SIG_DFL);
  }
  ~Job() {
    killAll();
    sigprocmask(SIG_SETMASK, &formerMask_, nullptr);
    close(pipe_[0]);
    close(pipe_[1]);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  void start(const std::string& directory) {
    const pid_t parent = getpid();
    for (int rank = 0; rank < options_.localRanks; rank++) {
      const pid_t pid = fork();
      if (pid < 0) {
        throwErrno("fork");
      }
      if (pid == 0) {
        child(rank, directory, parent);
      }
      running_[pid] = rank;
    }
  }

  // The exit status of the program.
  int wait() {
    const sigset_t signals = watchedSignals();
    while (!running_.empty()) {
      const int signal = sigwaitinfo(&signals, nullptr);
      if (signal > 0 && signal != SIGCHLD) {
        killAll();
        return 128 + signal;
      }
      const std::string trouble = reap();
      if (!trouble.empty()) {
        reportFailure(trouble);
        return 1;
      }
    }
    return 0;
  }

 private:
  [[noreturn]] void child(int rank, const std::string& directory,
                          pid_t parent) {
    sigprocmask(SIG_SETMASK, &formerMask_, nullptr);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
      _exit(1);  // the parent had died before prctl
    }
    Options options = options_;
    options.rank = rank;
    options.size = options_.localRanks;
    options.sharedPath = directory;
    int status = 0;
    try {
      runRank(options);
    } catch (const std::exception& e) {
      tell("rank " + std::to_string(rank) + ": " + e.what() + "\n");
      status = 1;
    }
    status = command_line::printed("benchmark", status);
    _exit(status);  // the parent's objects are not the child's to destroy
  }

  void tell(const std::string& text) {
    // A pipe takes up to PIPE_BUF (4096) bytes at once or not at all.
    std::string line = text.substr(0, options_.showAllErrors ? 4000 : 2000);
    if (line.back() != '\n') {
      line += '\n';
    }
    [[maybe_unused]] const auto written =
        write(pipe_[1], line.data(), line.size());
  }

  // Collects the children that have ended; how one of them failed, or empty.
  std::string reap() {
    std::string trouble;
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto found = running_.find(pid);
      if (found == running_.end()) {
        continue;
      }
      const std::string rank = "rank " + std::to_string(found->second);
      running_.erase(found);
      if (WIFSIGNALED(status)) {
        trouble = rank + " was ended by signal " +
                  std::to_string(WTERMSIG(status)) + " (" +
                  strsignal(WTERMSIG(status)) + ")\n";
      } else if (WEXITSTATUS(status) != 0 && trouble.empty()) {
        trouble = rank + " has failed\n";
      }
    }
    return trouble;
  }

  void reportFailure(const std::string& trouble) {
    if (options_.showAllErrors) {
      awaitOthers();
    }
    killAll();
    std::string told = readAll();
    if (!options_.showAllErrors) {
      const size_t next = told.find("\nrank ");
      told = next == std::string::npos ? told : told.substr(0, next + 1);
    }
    // A rank that was ended by a signal told nothing; the others' errors are
    // its consequence.
    const bool killed = trouble.find("signal") != std::string::npos;
    std::string text = told;
    if (killed || told.empty()) {
      text = options_.showAllErrors ? trouble + told : trouble;
    }
    std::fprintf(stderr, "benchmark: %s", text.c_str());
  }

  // Errors of the other ranks follow soon: they have lost a peer.
  void awaitOthers() {
    const sigset_t signals = watchedSignals();
    const timespec patience{2, 0};
    while (!running_.empty() &&
           sigtimedwait(&signals, nullptr, &patience) == SIGCHLD) {
      reap();
    }
  }

  std::string readAll() {
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = read(pipe_[0], buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, size_t(n));
    }
    return text;
  }

  void killAll() {
    for (const auto& [pid, rank] : running_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    running_.clear();
  }

  const Options& options_;
  int pipe_[2];
  sigset_t formerMask_;
  std::map<pid_t, int> running_;  // and their ranks
};

}  // namespace

int runLocalRanks(const Options& options) {
  const TemporaryDirectory directory;
  Job job(options);
  job.start(directory.path());
  return job.wait();
}

}  // namespace benchmark
