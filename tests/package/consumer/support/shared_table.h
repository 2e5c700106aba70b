// A key-value store of the application's own, as frameworks have one before
// they start Gloo: a directory with a file for each key.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

class SharedTable {
 public:
  using Bytes = std::vector<char>;

  explicit SharedTable(const std::string& directory) : directory_(directory) {}

  void put(const std::string& key, const Bytes& value) {
    const std::string path = pathOf(key);
    const std::string draft = path + "." + std::to_string(::getpid()) + "." +
                              std::to_string(draftNumber_++);
    std::ofstream(draft, std::ios::binary).write(value.data(), value.size());
    std::filesystem::rename(draft, path);
  }

  bool has(const std::string& key) const {
    return std::filesystem::exists(pathOf(key));
  }

  void waitFor(const std::string& key, std::chrono::milliseconds limit) const {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!has(key)) {
      if (std::chrono::steady_clock::now() > end) {
        throw std::runtime_error("no value for key " + key);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  Bytes at(const std::string& key) const {
    waitFor(key, std::chrono::seconds(30));
    std::ifstream in(pathOf(key), std::ios::binary);
    return Bytes(std::istreambuf_iterator<char>(in), {});
  }

  void extend(const std::string& key, const Bytes& more) {
    const Lock lock(directory_);
    Bytes value = has(key) ? at(key) : Bytes();
    value.insert(value.end(), more.begin(), more.end());
    put(key, value);
  }

  int64_t increase(const std::string& key, int64_t by) {
    const Lock lock(directory_);
    int64_t sum = by;
    if (has(key)) {
      const Bytes old = at(key);
      sum += std::stoll(std::string(old.begin(), old.end()));
    }
    const std::string text = std::to_string(sum);
    put(key, Bytes(text.begin(), text.end()));
    return sum;
  }

 private:
  class Lock {
   public:
    explicit Lock(const std::string& directory)
        : fd_(::open((directory + "/lock").c_str(), O_CREAT | O_RDWR, 0600)) {
      ::flock(fd_, LOCK_EX);
    }
    ~Lock() { ::close(fd_); }

   private:
    const int fd_;
  };

  // Keys may have any characters: the name is their hexadecimal form, hashed
  // when it would be too long.
  std::string pathOf(const std::string& key) const {
    static const char digits[] = "0123456789abcdef";
    std::string name;
    for (const unsigned char c : key) {
      name += digits[c >> 4];
      name += digits[c & 15];
    }
    if (name.size() > 200) {
      name =
          name.substr(0, 100) + std::to_string(std::hash<std::string>()(key));
    }
    return directory_ + "/" + name;
  }

  const std::string directory_;
  std::atomic<unsigned> draftNumber_{0};
};
