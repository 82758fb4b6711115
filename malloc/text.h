// Lines of text without stdio: what is said at an abort, at exit and in a trace.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel.h"

namespace plimsoll::heap {

// Appends to a fixed buffer; what does not fit is left out.
class Text {
 public:
  Text& operator<<(const char* word) {
    while (*word != '\0') put(*word++);
    return *this;
  }
  Text& operator<<(std::uint64_t number) { return digits(number, 10); }
  Text& operator<<(const void* pointer) {
    *this << "0x";
    return digits(reinterpret_cast<std::uintptr_t>(pointer), 16);
  }
  // "1.5 MiB"
  Text& size(std::uint64_t bytes) {
    constexpr const char* kUnits[] = {" B", " KiB", " MiB", " GiB", " TiB"};
    int unit = 0;
    std::uint64_t tenths = bytes * 10;
    while (tenths >= 10240 && unit < 4) {
      tenths /= 1024;
      ++unit;
    }
    *this << tenths / 10;
    if (unit > 0) *this << "." << tenths % 10;
    return *this << kUnits[unit];
  }
  void write_to(int file) const { write_all(file, buffer_, length_); }
  const char* c_str() const { return buffer_; }
  std::size_t length() const { return length_; }

 private:
  void put(char c) {
    if (length_ + 1 >= sizeof buffer_) return;
    buffer_[length_++] = c;
    buffer_[length_] = '\0';
  }
  Text& digits(std::uint64_t number, unsigned base) {
    char reversed[20];
    int count = 0;
    do {
      reversed[count++] = "0123456789abcdef"[number % base];
      number /= base;
    } while (number > 0);
    while (count > 0) put(reversed[--count]);
    return *this;
  }
  char buffer_[1024] = {};
  std::size_t length_ = 0;
};

// One line on stderr, then abort(). `what` says the subject first: "free(): 0x… was freed already".
[[noreturn]] void die(const char* call, const void* block, const char* what);

}  // namespace plimsoll::heap
