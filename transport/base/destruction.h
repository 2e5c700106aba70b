// For an object that calls a handler which may destroy it.
#pragma once

#include <utility>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// A member of the object. One thread at a time.
class Destruction {
 public:
  Destruction() = default;
  Destruction(const Destruction&) = delete;
  Destruction& operator=(const Destruction&) = delete;
  ~Destruction() {
    if (watched_ != nullptr) {
      *watched_ = true;
    }
  }

  // Around calls of the handler's: tells whether they have destroyed the
  // object. Watches may be nested.
  class Watch {
   public:
    explicit Watch(Destruction& of)
        : of_(of), outer_(std::exchange(of.watched_, &destroyed_)) {}
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch() {
      if (!destroyed_) {
        of_.watched_ = outer_;
      } else if (outer_ != nullptr) {
        *outer_ = true;
      }
    }
    bool destroyed() const { return destroyed_; }

   private:
    Destruction& of_;
    bool destroyed_ = false;
    bool* outer_;
  };

 private:
  bool* watched_ = nullptr;  // of the innermost watch; null: none
};

}  // namespace transport::base
GLOO_NAMESPACE_END
