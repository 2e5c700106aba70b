// What no allreduce between processes of one host can beat: every rank may read
// and write the others' vectors directly.
//
//   flags   one element: everyone writes its value, in the very cache line
//           of the flag that announces it, to everyone; two slots in turn, so
//           that nobody waits for a slot.
//   direct  each rank reduces its own slice of all vectors, in place, into all
//           of them; one barrier before, one after.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>

#include "measure.h"
#include "page.h"

namespace {

using measure::Operation;
using measure::Work;

// A vector in a file that all ranks map, after its owner, who makes it.
class SharedVector {
 public:
  SharedVector(const std::string& path, size_t bytes, bool owned)
      : bytes_(bytes) {
    const int fd =
        open(path.c_str(), O_RDWR | O_CLOEXEC | (owned ? O_CREAT | O_EXCL : 0),
             0600);
    int error = fd < 0 ? errno : 0;
    if (error == 0 && owned) {
      // Not ftruncate(): where memory is short, that succeeds, and the first
      // write ends the process.
      error = posix_fallocate(fd, 0, off_t(bytes));
    }
    void* memory = MAP_FAILED;
    if (error == 0) {
      memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      error = errno;
    }
    close(fd);
    if (memory == MAP_FAILED) {
      throw std::runtime_error("cannot map " + path + ": " + strerror(error));
    }
    data_ = static_cast<float*>(memory);
  }
  ~SharedVector() { munmap(data_, bytes_); }
  SharedVector(const SharedVector&) = delete;
  SharedVector& operator=(const SharedVector&) = delete;

  float* data() const { return data_; }

 private:
  float* data_;
  size_t bytes_;
};

__attribute__((target_clones("avx512f", "avx2", "default"))) void addTwo(
    float* a, float* b, size_t begin, size_t end) {
  for (size_t i = begin; i < end; i++) {
    const float sum = a[i] + b[i];
    a[i] = sum;
    b[i] = sum;
  }
}

__attribute__((target_clones("avx512f", "avx2", "default"))) void addAll(
    float* const* vectors, int count, size_t begin, size_t end) {
  for (size_t i = begin; i < end; i++) {
    float sum = 0;
    for (int k = 0; k < count; k++) {
      sum += vectors[k][i];
    }
    for (int k = 0; k < count; k++) {
      vectors[k][i] = sum;
    }
  }
}

class Limit : public measure::Program {
 public:
  explicit Limit(const measure::Arguments& arguments)
      : arguments_(arguments),
        page_(arguments.directory + "/limit", arguments.rank, arguments.size) {
    const bool crowded =
        arguments.size > int(std::thread::hardware_concurrency());
    patience_ = crowded ? 30 : 2000;
  }

  std::vector<std::string> modes(const std::string& collective) override {
    return collective == "allreduce" ? std::vector<std::string>{""}
                                     : std::vector<std::string>{};
  }

  float* allocate(int, size_t bytes) override {
    vectors_.clear();
    vectors_.resize(size_t(arguments_.size));
    const int me = arguments_.rank;
    try {
      map(me, bytes);
      page_.barrier();
      for (int i = 0; i < arguments_.size; i++) {
        if (i != me) {
          map(i, bytes);
        }
      }
      page_.barrier();
    } catch (...) {
      page_.fail();
      throw;
    }
    unlink(pathOf(me).c_str());  // memory of one size is not kept for the next
    return own();
  }

  Operation prepare(const Work& work, const std::string&) override {
    const size_t n = work.outputElements;
    pointers_.clear();
    for (const auto& vector : vectors_) {  // all begin where this rank's does
      pointers_.push_back(vector->data() + (work.output - own()));
    }
    if (n == 1) {
      return [this, work] { flags(work.output); };
    }
    const size_t slice = (n + size_t(arguments_.size) - 1) / arguments_.size;
    const size_t begin = std::min(n, slice * size_t(arguments_.rank));
    const size_t end = std::min(n, begin + slice);
    return [this, begin, end] {
      page_.barrier();
      if (arguments_.size == 2) {
        addTwo(pointers_[0], pointers_[1], begin, end);
      } else {
        addAll(pointers_.data(), arguments_.size, begin, end);
      }
      page_.barrier();
    };
  }

  std::string links() override { return "memory"; }

 private:
  std::string pathOf(int rank) const {
    return arguments_.directory + "/vector" + std::to_string(rank);
  }

  void map(int rank, size_t bytes) {
    vectors_[size_t(rank)] = std::make_unique<SharedVector>(
        pathOf(rank), bytes, rank == arguments_.rank);
  }

  float* own() const { return vectors_[size_t(arguments_.rank)]->data(); }

  void flags(float* value) {
    const int me = arguments_.rank;
    const uint64_t sequence = ++sequence_;
    const int slot = int(sequence % 2);
    for (int peer = 0; peer < arguments_.size; peer++) {
      if (peer != me) {
        auto& cell = page_.cell(slot, me, peer);
        cell.value = *value;
        cell.sequence.store(sequence, std::memory_order_release);
      }
    }
    for (int peer = 0; peer < arguments_.size; peer++) {
      if (peer != me) {
        const auto& cell = page_.cell(slot, peer, me);
        for (int checks = 0;
             cell.sequence.load(std::memory_order_acquire) < sequence;
             checks++) {
          if (checks > patience_) {
            sched_yield();
          }
        }
        *value += cell.value;
      }
    }
  }

  const measure::Arguments& arguments_;
  measure::Page page_;
  int patience_;
  uint64_t sequence_ = 0;
  std::vector<std::unique_ptr<SharedVector>> vectors_;
  std::vector<float*> pointers_;
};

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = measure::parse(argc, argv, {});
  try {
    Limit program(arguments);
    return measure::run(program, arguments);
  } catch (const std::exception& e) {
    fprintf(stderr, "rank %d: %s\n", arguments.rank, e.what());
    return 1;
  }
}
