// Columns of numbers inside JSON: typed, differenced where that helps, deflated, base64.
//
//   {"type": "i32", "count": 3, "delta": true, "deflate": "eJxjZGBg..."}
//
// A million rows as JSON numbers are 60 MB and take a browser seconds to parse; as columns they are a
// few MB and decode into typed arrays in milliseconds. Sorted columns are stored as differences, which
// deflate to almost nothing. Little-endian, as every browser's typed arrays are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace plimsoll::report {

nlohmann::ordered_json column(std::span<const std::uint8_t> numbers);
nlohmann::ordered_json column(std::span<const std::int32_t> numbers, bool delta = false);
nlohmann::ordered_json column(std::span<const double> numbers);

std::string base64(std::string_view bytes);

}  // namespace plimsoll::report
