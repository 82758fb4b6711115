#include "plimsoll/report/columns.h"

#include <bit>
#include <vector>

#include <zlib.h>

#include "plimsoll/base/check.h"

namespace plimsoll::report {
namespace {

static_assert(std::endian::native == std::endian::little, "columns are stored as they lie in memory");

std::string deflated(std::string_view bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string out(size, '\0');
  const int status = compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                               reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uLong>(bytes.size()), 5);
  PLIMSOLL_CHECK(status == Z_OK, "zlib failed on memory we gave it");
  out.resize(size);
  return out;
}

template <typename T>
nlohmann::ordered_json encode(const char* type, std::span<const T> numbers) {
  const std::string_view bytes(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
  return {{"type", type}, {"count", numbers.size()}, {"deflate", base64(deflated(bytes))}};
}

}  // namespace

std::string base64(std::string_view bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? static_cast<std::uint8_t>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      out += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return out;
}

nlohmann::ordered_json column(std::span<const std::uint8_t> numbers) { return encode("u8", numbers); }

nlohmann::ordered_json column(std::span<const std::int32_t> numbers, bool delta) {
  if (!delta) return encode("i32", numbers);
  std::vector<std::int32_t> steps(numbers.begin(), numbers.end());
  for (std::size_t i = steps.size(); i-- > 1;) {
    steps[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(steps[i]) - static_cast<std::uint32_t>(steps[i - 1]));
  }
  nlohmann::ordered_json out = encode("i32", std::span<const std::int32_t>(steps));
  out["delta"] = true;
  return out;
}

nlohmann::ordered_json column(std::span<const double> numbers) { return encode("f64", numbers); }

}  // namespace plimsoll::report
