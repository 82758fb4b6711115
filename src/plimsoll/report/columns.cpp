#include "plimsoll/report/columns.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <vector>

#include <zlib.h>

#include "plimsoll/base/check.h"

namespace plimsoll::report {
namespace {

static_assert(std::endian::native == std::endian::little,
              "columns are stored as they lie in memory");

std::string deflated(std::string_view bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string out(size, '\0');
  const int status =
      compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uLong>(bytes.size()), 5);
  PLIMSOLL_CHECK(status == Z_OK, "zlib failed on memory we gave it");
  out.resize(size);
  return out;
}

template <typename T>
std::string packed(std::span<const T> numbers) {
  return base64(deflated({reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()}));
}

template <typename T>
std::string narrowed(std::span<const std::int64_t> numbers, std::int64_t base, std::int64_t unit) {
  std::vector<T> out;
  out.reserve(numbers.size());
  for (const std::int64_t number : numbers) out.push_back(static_cast<T>((number - base) / unit));
  return packed(std::span<const T>(out));
}

}  // namespace

std::string base64(std::string_view bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
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

nlohmann::ordered_json column(std::span<const std::int64_t> given, bool delta) {
  std::vector<std::int64_t> numbers(given.begin(), given.end());
  if (delta) std::adjacent_difference(given.begin(), given.end(), numbers.begin());
  const bool empty = numbers.empty();
  const std::int64_t base = empty ? 0 : *std::min_element(numbers.begin(), numbers.end());
  std::int64_t unit = 0;
  std::int64_t most = 0;
  for (const std::int64_t number : numbers) {
    unit = std::gcd(unit, number - base);
    most = std::max(most, number - base);
  }
  const auto is_wide = [](std::int64_t number) {
    return number != static_cast<std::int32_t>(number);
  };
  nlohmann::ordered_json out{
      {"count", numbers.size()}, {"base", base}, {"unit", std::max<std::int64_t>(unit, 1)}};
  if (delta) out["delta"] = true;
  if (std::any_of(given.begin(), given.end(), is_wide)) out["wide"] = true;
  if (unit == 0) return out;
  const std::int64_t steps = most / unit;
  if (steps > std::numeric_limits<std::uint32_t>::max()) {
    out["base"] = 0;
    out["unit"] = 1;
    out["type"] = "f64";
    const std::vector<double> doubles(numbers.begin(), numbers.end());
    out["deflate"] = packed(std::span<const double>(doubles));
  } else if (steps > std::numeric_limits<std::uint16_t>::max()) {
    out["type"] = "u32";
    out["deflate"] = narrowed<std::uint32_t>(numbers, base, unit);
  } else if (steps > std::numeric_limits<std::uint8_t>::max()) {
    out["type"] = "u16";
    out["deflate"] = narrowed<std::uint16_t>(numbers, base, unit);
  } else {
    out["type"] = "u8";
    out["deflate"] = narrowed<std::uint8_t>(numbers, base, unit);
  }
  return out;
}

nlohmann::ordered_json column(std::span<const double> numbers) {
  return {{"count", numbers.size()},   {"base", 0}, {"unit", 1}, {"wide", true}, {"type", "f64"},
          {"deflate", packed(numbers)}};
}

}  // namespace plimsoll::report
