#include "plimsoll/base/content_hash.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/base/checksum64.h"

namespace plimsoll {

std::uint64_t content_hash(std::span<const std::byte> bytes,
                           const std::function<void(std::span<const std::byte>)>& release) {
  constexpr std::size_t kPiece = 16 << 20;
  std::vector<std::uint64_t> sums{bytes.size()};
  for (std::size_t at = 0; at < bytes.size(); at += kPiece) {
    const auto piece = bytes.subspan(at, std::min(kPiece, bytes.size() - at));
    sums.push_back(checksum64(piece));
    if (release) release(piece);
  }
  return checksum64(std::as_bytes(std::span(sums)));
}

std::string hash_text(std::uint64_t hash) {
  return fmt::format("{:016x}", hash);
}

}  // namespace plimsoll
