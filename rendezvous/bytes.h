// Little-endian encoding, and decoding of bytes that somebody else wrote.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// Appends to a vector that the caller owns.
class ByteWriter {
 public:
  explicit ByteWriter(std::vector<char>& out) : out_(out) {}

  void integer(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) {
      out_.push_back(static_cast<char>(value >> (8 * i)));
    }
  }
  void u8(uint8_t value) { integer(value, 1); }
  void u16(uint16_t value) { integer(value, 2); }
  void u32(uint32_t value) { integer(value, 4); }
  void u64(uint64_t value) { integer(value, 8); }
  void raw(std::span<const char> bytes) {
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  // Length in 4 bytes, then the bytes.
  void text(std::span<const char> bytes) {
    u32(static_cast<uint32_t>(bytes.size()));
    raw(bytes);
  }

 private:
  std::vector<char>& out_;
};

// Reads past the end give zeros and empty spans, and make ok() false.
class ByteReader {
 public:
  explicit ByteReader(std::span<const char> in) : in_(in) {}

  uint64_t integer(int bytes) {
    uint64_t value = 0;
    const auto part = raw(static_cast<size_t>(bytes));
    for (size_t i = 0; i < part.size(); i++) {
      value |= uint64_t{static_cast<unsigned char>(part[i])} << (8 * i);
    }
    return value;
  }
  uint8_t u8() { return static_cast<uint8_t>(integer(1)); }
  uint16_t u16() { return static_cast<uint16_t>(integer(2)); }
  uint32_t u32() { return static_cast<uint32_t>(integer(4)); }
  uint64_t u64() { return integer(8); }
  std::span<const char> raw(size_t bytes) {
    if (bytes > in_.size()) {
      ok_ = false;
      in_ = {};
      return {};
    }
    const auto part = in_.first(bytes);
    in_ = in_.subspan(bytes);
    return part;
  }
  std::span<const char> text() { return raw(u32()); }

  bool ok() const { return ok_; }
  size_t left() const { return in_.size(); }

 private:
  std::span<const char> in_;
  bool ok_ = true;
};

inline std::string toString(std::span<const char> bytes) {
  return {bytes.begin(), bytes.end()};
}
inline std::vector<char> toVector(std::span<const char> bytes) {
  return {bytes.begin(), bytes.end()};
}

// FNV-1a: finds damage, not malice.
inline uint32_t checksum(std::span<const char> bytes,
                         uint32_t state = 0x811c9dc5U) {
  for (const char c : bytes) {
    state = (state ^ static_cast<unsigned char>(c)) * 0x01000193U;
  }
  return state;
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
