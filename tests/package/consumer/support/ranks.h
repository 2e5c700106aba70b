// Runs the ranks of a job: as processes of this host, or as threads.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gloo/rendezvous/store.h"

// What a rank does; `directory` is empty at first and the same for all ranks.
using RankBody =
    std::function<void(int rank, int size, const std::string& directory)>;

// Longer than any job here takes; a job that hangs is ended and fails.
constexpr unsigned kJobSeconds = 100;

inline bool runBody(const RankBody& body, int rank, int size,
                    const std::string& directory) {
  try {
    body(rank, size, directory);
    return true;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d of %d: %s\n", rank, size, error.what());
    return false;
  }
}

class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string name = std::filesystem::temp_directory_path() / "rankXXXXXX";
    path = ::mkdtemp(name.data()) != nullptr ? name : "";
  }
  ~ScratchDirectory() { std::filesystem::remove_all(path); }

  std::string path;
};

// Returns whether all ranks succeeded.
inline bool runProcesses(int size, const RankBody& body) {
  ScratchDirectory scratch;
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; rank++) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::alarm(kJobSeconds);
      std::exit(runBody(body, rank, size, scratch.path) ? 0 : 1);
    }
    children.push_back(pid);
  }
  bool good = true;
  for (int rank = 0; rank < size; rank++) {
    int status = -1;
    ::waitpid(children[rank], &status, 0);
    if (status != 0) {
      std::fprintf(stderr, "rank %d ended with status %d\n", rank, status);
      good = false;
    }
  }
  return good;
}

// Nobody leaves while others are at work: the peer library takes that for an
// error. `store` is that of the job.
inline void leaveTogether(gloo::rendezvous::Store& store, int rank, int size) {
  std::vector<std::string> done;
  for (int each = 0; each < size; each++) {
    done.push_back("done" + std::to_string(each));
  }
  store.set(done[rank], std::vector<char>(1));
  store.wait(done);
}

inline bool runThreads(int size, const RankBody& body) {
  ::alarm(kJobSeconds);
  ScratchDirectory scratch;
  std::vector<char> good(size, 0);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; rank++) {
    threads.emplace_back([&, rank] {
      good[rank] = runBody(body, rank, size, scratch.path) ? 1 : 0;
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  ::alarm(0);
  for (const char one : good) {
    if (!one) {
      return false;
    }
  }
  return true;
}
