// gzip in and out, through zlib.
//
// GzipSource inflates piece by piece, for readers that stream: fill() gives at most as many bytes
// as asked and 0 at the end. inflate() does a whole file at once and refuses to pass a limit,
// because a kilobyte of gzip can hold a megabyte of zeros.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"

namespace plimsoll::trace {

bool is_gzip(std::string_view bytes);

class GzipSource {
 public:
  explicit GzipSource(std::string_view compressed);
  ~GzipSource();
  GzipSource(GzipSource&&) noexcept;
  GzipSource& operator=(GzipSource&&) noexcept;

  // Several members one after the other are one stream, as gzip has it.
  Result<std::size_t> fill(std::span<char> out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Result<std::string> inflate(std::string_view compressed, Bytes most);
std::string gzip(std::string_view plain);

}  // namespace plimsoll::trace
