#include "page.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "ticks.h"

namespace measure {

struct Page::Layout {
  alignas(128) std::atomic<uint32_t> arrived;
  alignas(128) std::atomic<uint32_t> generation;
  alignas(128) std::atomic<uint32_t> failed;
  std::atomic<uint32_t> stop;
  std::atomic<uint32_t> dropped;
  std::atomic<uint64_t> opened;  // the barrier, in ticks
  struct alignas(128) Time {
    double ticks;
  } times[kMaxRanks];
  Cell cells[2][kMaxRanks][kMaxRanks];
};

static_assert(std::atomic<uint32_t>::is_always_lock_free,
              "the page is shared by processes");

Page::Page(const std::string& path, int rank, int size)
    : rank_(rank), size_(size) {
  if (size < 1 || size > kMaxRanks || rank < 0 || rank >= size) {
    throw std::runtime_error("rank " + std::to_string(rank) + " of " +
                             std::to_string(size) + " is out of range");
  }
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_CREAT, 0600);
  // Growing a file fills it with zeros, and every rank grows it to one length.
  if (fd < 0 || ftruncate(fd, sizeof(Layout)) != 0) {
    throw std::runtime_error("cannot open " + path + ": " + strerror(errno));
  }
  void* memory =
      mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) {
    throw std::runtime_error("cannot map " + path + ": " + strerror(errno));
  }
  layout_ = static_cast<Layout*>(memory);
  // With more ranks than cores, whoever waits is in the way of the one that it
  // waits for.
  crowded_ = size > int(std::thread::hardware_concurrency());
  patience_ = crowded_ ? 30 : 2000;
}

Page::~Page() { munmap(layout_, sizeof(Layout)); }

void Page::barrier() {
  const uint32_t generation =
      layout_->generation.load(std::memory_order_acquire);
  if (layout_->arrived.fetch_add(1) + 1 == uint32_t(size_)) {
    layout_->arrived.store(0);
    layout_->opened.store(ticks());
    layout_->generation.store(generation + 1);
    return;
  }
  std::chrono::steady_clock::time_point start{};
  for (int checks = 0;
       layout_->generation.load(std::memory_order_acquire) == generation;
       checks++) {
    if (checks < patience_) {
      continue;
    }
    sched_yield();
    const auto now = std::chrono::steady_clock::now();
    if (checks == patience_) {
      start = now;
    }
    if (layout_->failed.load() != 0) {
      throw std::runtime_error("another rank has failed");
    }
    if (now - start > std::chrono::minutes(1)) {
      fail();
      throw std::runtime_error("a rank has not come to the barrier");
    }
  }
}

uint64_t Page::start() const {
  return crowded_ ? layout_->opened.load() : ticks();
}

void Page::fail() { layout_->failed.store(1); }

void Page::setTime(double ticks) { layout_->times[rank_].ticks = ticks; }

double Page::meanTime() const {
  double sum = 0;
  for (int i = 0; i < size_; i++) {
    sum += layout_->times[i].ticks;
  }
  return sum / size_;
}

void Page::setStop(bool stop) { layout_->stop.store(stop ? 1 : 0); }
bool Page::stop() const { return layout_->stop.load() != 0; }

void Page::setDropped(uint32_t modes) { layout_->dropped.store(modes); }
uint32_t Page::dropped() const { return layout_->dropped.load(); }

Page::Cell& Page::cell(int slot, int from, int to) {
  return layout_->cells[slot][from][to];
}

}  // namespace measure
