// Columns of numbers inside JSON: as narrow as they can be, deflated, base64.
//
//   {"count": 3, "base": 512, "unit": 512, "type": "u8", "deflate": "eJxjZGBg..."}   512 + 512 x n
//
// A million rows as JSON numbers are 60 MB and take a browser seconds to parse; as columns they are
// a few MB and decode into typed arrays in milliseconds, most of which is inflating. So whole
// numbers are stored as multiples of their common divisor above their least, in the narrowest type
// that holds them, and a column of one number many times is that number alone (no type). Sorted
// columns are stored as differences (`delta`). `wide` says that the numbers do not fit 32 bits.
// Fractions are "f64". Little-endian, as every browser's typed arrays are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace plimsoll::report {

// Numbers must be at most 2^53 apart from zero and each other: what a page counts exactly.
nlohmann::ordered_json column(std::span<const std::int64_t> numbers, bool delta = false);
nlohmann::ordered_json column(std::span<const double> numbers);

std::string base64(std::string_view bytes);

}  // namespace plimsoll::report
