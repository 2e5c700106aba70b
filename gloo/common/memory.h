// References to an object that somebody else destroys. The owner holds a
// ShareableNonOwningPtr and others WeakNonOwningPtrs made from it; who uses the
// object holds a NonOwningPtr meanwhile, and the owner's reset() waits for it.
// In a forked child nobody gets the object, and nobody waits.
#pragma once

#include <unistd.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace memory_detail {

// Thread-safe.
template <typename T>
class Shared {
 public:
  explicit Shared(T* object) : object_(object) {}

  // Null once the owner has withdrawn the object.
  T* acquire() {
    if (inherited()) {
      return nullptr;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    if (object_ != nullptr) {
      users_++;
    }
    return object_;
  }

  void release() {
    if (inherited()) {
      return;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    users_--;
    unused_.notify_all();
  }

  void withdraw() {
    if (inherited()) {
      return;
    }
    std::unique_lock<std::mutex> lock(mutex_);
    object_ = nullptr;
    unused_.wait(lock, [this] { return users_ == 0; });
  }

 private:
  // Threads that exist in the parent only may have the lock, or the object.
  bool inherited() const { return ::getpid() != process_; }

  const pid_t process_ = ::getpid();
  std::mutex mutex_;
  std::condition_variable unused_;
  T* object_;
  int users_ = 0;
};

}  // namespace memory_detail

template <typename T>
class ShareableNonOwningPtr;
template <typename T>
class WeakNonOwningPtr;

// Access to the object, or null. Movable. One thread.
template <typename T>
class NonOwningPtr final {
 public:
  NonOwningPtr() = default;
  explicit NonOwningPtr(const WeakNonOwningPtr<T>& weak)
      : NonOwningPtr(weak.lock()) {}
  NonOwningPtr(NonOwningPtr&& other) noexcept
      : shared_(std::move(other.shared_)),
        object_(std::exchange(other.object_, nullptr)) {}
  NonOwningPtr& operator=(NonOwningPtr&& other) noexcept {
    std::swap(shared_, other.shared_);
    std::swap(object_, other.object_);
    return *this;
  }
  ~NonOwningPtr() {
    if (object_ != nullptr) {
      shared_->release();
    }
  }

  explicit operator bool() const noexcept { return object_ != nullptr; }
  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }

 private:
  friend class WeakNonOwningPtr<T>;

  explicit NonOwningPtr(std::shared_ptr<memory_detail::Shared<T>> shared)
      : shared_(std::move(shared)), object_(shared_->acquire()) {}

  std::shared_ptr<memory_detail::Shared<T>> shared_;
  T* object_ = nullptr;
};

// Copyable; may outlive the object. Thread-safe as a shared_ptr is.
template <typename T>
class WeakNonOwningPtr final {
 public:
  WeakNonOwningPtr() = default;
  explicit WeakNonOwningPtr(const ShareableNonOwningPtr<T>& owner)
      : shared_(owner.shared_) {}

  // Null once the owner was reset.
  NonOwningPtr<T> lock() const {
    return shared_ == nullptr ? NonOwningPtr<T>() : NonOwningPtr<T>(shared_);
  }

 private:
  std::shared_ptr<memory_detail::Shared<T>> shared_;
};

// Held by the object's owner, and gone or reset before the object is.
template <typename T>
class ShareableNonOwningPtr final {
 public:
  explicit ShareableNonOwningPtr(T* object)
      : shared_(std::make_shared<memory_detail::Shared<T>>(object)) {}
  ShareableNonOwningPtr(const ShareableNonOwningPtr&) = delete;
  ShareableNonOwningPtr& operator=(const ShareableNonOwningPtr&) = delete;
  ~ShareableNonOwningPtr() { reset(); }

  // Nobody gets the object any more; waits until nobody uses it. Not to be
  // called by a thread that holds a NonOwningPtr to it.
  void reset() { shared_->withdraw(); }

 private:
  friend class WeakNonOwningPtr<T>;

  std::shared_ptr<memory_detail::Shared<T>> shared_;
};

GLOO_NAMESPACE_END
