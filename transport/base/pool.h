// Storage that steady state reuses: pools of small objects, intrusive lists,
// and bounce memory for messages that met no receive. None is thread-safe: they
// live under the domain's lock.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// A doubly linked list through two members of T, `next` and `prev` unless it is
// told others. Owns nothing; an element is in one list at most.
template <typename T, T* T::*Next = &T::next, T* T::*Prev = &T::prev>
class Fifo {
 public:
  bool empty() const { return head_ == nullptr; }
  size_t size() const { return size_; }
  T* front() const { return head_; }
  T* back() const { return tail_; }

  void pushBack(T* item) {
    item->*Next = nullptr;
    item->*Prev = tail_;
    (tail_ != nullptr ? tail_->*Next : head_) = item;
    tail_ = item;
    size_++;
  }

  void remove(T* item) {
    T* const before = item->*Prev;
    T* const after = item->*Next;
    (before != nullptr ? before->*Next : head_) = after;
    (after != nullptr ? after->*Prev : tail_) = before;
    item->*Next = item->*Prev = nullptr;
    size_--;
  }

  T* popFront() {
    T* item = head_;
    if (item != nullptr) {
      remove(item);
    }
    return item;
  }

 private:
  T* head_ = nullptr;
  T* tail_ = nullptr;
  size_t size_ = 0;
};

// Hands out objects of one type; grows by chunks and never shrinks; giving back
// needs no memory. Objects taken are not reset: the taker does. Counts how
// often it grows once it is made: contexts are made without the domain's lock,
// and the counter is that of all.
template <typename T>
class Pool {
 public:
  explicit Pool(uint64_t* allocations) : allocations_(allocations) { grow(); }

  // What may throw of the next take().
  void prepare() {
    if (free_.empty()) {
      ++*allocations_;
      grow();
    }
  }

  T* take() {
    prepare();
    T* item = free_.back();
    free_.pop_back();
    return item;
  }

  void give(T* item) { free_.push_back(item); }

 private:
  static constexpr size_t kChunk = 64;

  void grow() {
    chunks_.push_back(std::make_unique<std::array<T, kChunk>>());
    free_.reserve(chunks_.size() * kChunk);
    for (T& item : *chunks_.back()) {
      free_.push_back(&item);
    }
  }

  uint64_t* allocations_;
  std::vector<std::unique_ptr<std::array<T, kChunk>>> chunks_;
  std::vector<T*> free_;
};

// Memory by powers of two. Credits bound how much of it is ever taken. Grows
// and counts as Pool does.
class BounceMemory {
 public:
  // Small buffers are there from the start: whether a message comes before its
  // receive is a matter of luck, and not to be paid for later.
  explicit BounceMemory(uint64_t* allocations) : allocations_(allocations) {
    for (size_t bytes = 64; bytes <= kReadyBytes; bytes *= 2) {
      grow(shelves_[classOf(bytes)], bytes);
    }
  }

  char* take(size_t bytes) {
    Shelf& shelf = shelves_[classOf(bytes)];
    if (shelf.free.empty()) {
      ++*allocations_;
      grow(shelf, size_t{1} << classOf(bytes));
    }
    char* memory = shelf.free.back().release();
    shelf.free.pop_back();
    return memory;
  }

  void give(char* memory, size_t bytes) {
    shelves_[classOf(bytes)].free.emplace_back(memory);
  }

 private:
  // Of one size.
  struct Shelf {
    std::vector<std::unique_ptr<char[]>> free;  // has a place for all
    size_t made = 0;
  };
  static constexpr size_t kReadyBytes = size_t{256} << 10;

  // Several at once, so that a peer that runs ahead a little more than before
  // does not cost an allocation each time.
  void grow(Shelf& shelf, size_t bytes) {
    constexpr size_t kBatchBytes = size_t{1} << 20;
    const size_t count = std::clamp<size_t>(kBatchBytes / bytes, 1, 16);
    shelf.free.reserve(std::bit_ceil(std::max<size_t>(shelf.made + count, 64)));
    for (size_t i = 0; i < count; i++) {
      shelf.free.push_back(std::make_unique_for_overwrite<char[]>(bytes));
      shelf.made++;
    }
  }

  static size_t classOf(size_t bytes) {
    return static_cast<size_t>(
        std::bit_width(std::bit_ceil(bytes < 64 ? size_t{64} : bytes)) - 1);
  }

  uint64_t* allocations_;
  std::array<Shelf, 64> shelves_;
};

}  // namespace transport::base
GLOO_NAMESPACE_END
