// An array that grows without moving: pieces of 4096 elements, found by shift and mask.
//
// A reader that meets tens of millions of small things cannot afford a vector, which holds the old
// and the new array while it doubles. Indices stay valid; there is no removal.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace plimsoll::trace {

template <typename T>
class ChunkedArray {
 public:
  T& operator[](std::size_t index) { return pieces_[index >> kBits][index & kMask]; }
  const T& operator[](std::size_t index) const { return pieces_[index >> kBits][index & kMask]; }
  std::size_t size() const { return size_; }

  std::size_t push_back(const T& value) {
    if ((size_ & kMask) == 0) pieces_.push_back(std::make_unique_for_overwrite<T[]>(kMask + 1));
    (*this)[size_] = value;
    return size_++;
  }

 private:
  static constexpr std::size_t kBits = 12;
  static constexpr std::size_t kMask = (std::size_t{1} << kBits) - 1;
  std::vector<std::unique_ptr<T[]>> pieces_;
  std::size_t size_ = 0;
};

}  // namespace plimsoll::trace
