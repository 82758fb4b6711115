// Element types, from one bit to 64. Widths are in bits: sizes are computed as ceil(n x bits / 8),
// so packed 4-bit weights and 1-bit masks are ordinary tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace plimsoll::ir {

enum class DType : std::uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kF8E4M3,
  kF8E5M2,
  kI64,
  kI32,
  kI16,
  kI8,
  kI4,
  kU64,
  kU32,
  kU16,
  kU8,
  kU4,
  kBool,  // one byte, 0 or 1
  kBit,   // one bit, eight to a byte, lowest first
};
inline constexpr int kDTypeCount = static_cast<int>(DType::kBit) + 1;

int bits(DType dtype);
bool is_float(DType dtype);
bool is_signed_integer(DType dtype);
// Everything that is no float: integers, bool, bit.
inline bool is_integral(DType dtype) {
  return !is_float(dtype);
}

// "fp32", "bf16", "int4", "bit": the names of the text form and of --dtype.
std::string_view name(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);

}  // namespace plimsoll::ir
