// The bytes of a pickle as one moving window: a mapped file whole, or gzip inflated piece by piece.
//
// need(n) makes n bytes available in a row from `here()`, refilling if it must; false at the end.
// So the reader of opcodes never sees where a piece ends, and a file of any size needs one buffer.
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "plimsoll/base/result.h"
#include "plimsoll/trace/gzip.h"

namespace plimsoll::trace {

class PickleSource {
 public:
  explicit PickleSource(std::string_view bytes)
      : begin_(bytes.data()), here_(bytes.data()), end_(bytes.data() + bytes.size()) {
    if (is_gzip(bytes)) {
      gzip_.emplace(bytes);
      begin_ = here_ = end_ = nullptr;
    }
  }

  bool need(std::size_t count) {
    if (static_cast<std::size_t>(end_ - here_) >= count) [[likely]]
      return true;
    return refill(count);
  }
  const char* here() const { return here_; }
  void skip(std::size_t count) { here_ += count; }
  std::int64_t position() const { return consumed_ + (here_ - begin_); }
  // What went wrong with the compressed data, if that is why need() failed.
  const std::optional<Error>& problem() const { return problem_; }

  template <typename Integer>
  Integer read() {
    Integer value;
    std::memcpy(&value, here_, sizeof value);
    here_ += sizeof value;
    return value;
  }

 private:
  static constexpr std::size_t kPiece = 1 << 20;

  bool refill(std::size_t count) {
    if (!gzip_ || problem_) return false;
    const auto left = static_cast<std::size_t>(end_ - here_);
    consumed_ = position();
    std::string moved(here_ == nullptr ? "" : std::string(here_, left));
    moved.resize(std::max(count, left) + kPiece);
    std::size_t filled = left;
    while (filled < count) {
      const auto made = gzip_->fill({moved.data() + filled, moved.size() - filled});
      if (!made) problem_ = made.error();
      if (!made || *made == 0) break;
      filled += *made;
    }
    buffer_ = std::move(moved);
    begin_ = here_ = buffer_.data();
    end_ = here_ + filled;
    return filled >= count;
  }

  const char* begin_;  // of the window; the byte of the pickle it stands for is consumed_
  const char* here_;
  const char* end_;
  std::optional<GzipSource> gzip_;
  std::string buffer_;
  std::int64_t consumed_ = 0;
  std::optional<Error> problem_;
};

}  // namespace plimsoll::trace
