#include "plimsoll/ops/evaluation/array.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace plimsoll::ops {
namespace {

// A small binary float: sign, exponent, mantissa. e4m3 has no infinity: all ones is its only NaN.
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int max_exponent() const { return (1 << exponent_bits) - 1; }
};

FloatFormat format_of(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kF16:
      return {5, 10, true};
    case ir::DType::kBF16:
      return {8, 7, true};
    case ir::DType::kF8E4M3:
      return {4, 3, false};
    case ir::DType::kF8E5M2:
      return {5, 2, true};
    default:
      PLIMSOLL_CHECK(false, "{} is no small float", ir::name(dtype));
  }
}

std::uint64_t encode_small(FloatFormat format, double value) {
  const std::uint64_t sign =
      std::signbit(value) ? 1ULL << (format.exponent_bits + format.mantissa_bits) : 0;
  const std::uint64_t exponent_ones = static_cast<std::uint64_t>(format.max_exponent())
                                      << format.mantissa_bits;
  const std::uint64_t mantissa_ones = (1ULL << format.mantissa_bits) - 1;
  const std::uint64_t not_a_number =
      exponent_ones | (format.has_infinity ? 1ULL << (format.mantissa_bits - 1) : mantissa_ones);
  if (std::isnan(value)) return sign | not_a_number;
  const double magnitude = std::abs(value);
  const std::uint64_t overflow = sign | (format.has_infinity ? exponent_ones : not_a_number);
  if (std::isinf(value)) return overflow;
  if (magnitude == 0) return sign;
  int exponent = std::max(std::ilogb(magnitude), 1 - format.bias());
  // Units in the last place, ties to even (the default rounding mode of nearbyint).
  const double units = std::nearbyint(std::ldexp(magnitude, format.mantissa_bits - exponent));
  const auto whole = static_cast<std::uint64_t>(units);
  const std::uint64_t hidden = 1ULL << format.mantissa_bits;
  std::uint64_t pattern = 0;
  if (whole < hidden) {
    pattern = whole;  // subnormal
  } else {
    // Adding whole - hidden carries into the exponent when rounding reached the next power of two.
    pattern = (static_cast<std::uint64_t>(exponent + format.bias()) << format.mantissa_bits) +
              (whole - hidden);
  }
  const std::uint64_t largest =
      format.has_infinity ? exponent_ones - 1 : (exponent_ones | mantissa_ones) - 1;
  return pattern > largest ? overflow : sign | pattern;
}

double decode_small(FloatFormat format, std::uint64_t pattern) {
  const std::uint64_t mantissa = pattern & ((1ULL << format.mantissa_bits) - 1);
  const int exponent = static_cast<int>(pattern >> format.mantissa_bits) & format.max_exponent();
  const double sign = (pattern >> (format.exponent_bits + format.mantissa_bits)) & 1 ? -1 : 1;
  const bool all_ones = mantissa == (1ULL << format.mantissa_bits) - 1;
  if (exponent == format.max_exponent() && (format.has_infinity || all_ones)) {
    if (format.has_infinity && mantissa == 0) return sign * std::numeric_limits<double>::infinity();
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0)
    return sign *
           std::ldexp(static_cast<double>(mantissa), 1 - format.bias() - format.mantissa_bits);
  return sign * std::ldexp(static_cast<double>(mantissa | (1ULL << format.mantissa_bits)),
                           exponent - format.bias() - format.mantissa_bits);
}

std::int64_t wrap(ir::DType dtype, std::int64_t value) {
  if (dtype == ir::DType::kBool || dtype == ir::DType::kBit) return value != 0;
  const int width = ir::bits(dtype);
  if (width == 64) return value;
  const std::uint64_t kept = static_cast<std::uint64_t>(value) & ((1ULL << width) - 1);
  if (!ir::is_signed_integer(dtype)) return static_cast<std::int64_t>(kept);
  return static_cast<std::int64_t>(kept << (64 - width)) >> (64 - width);
}

// Elements narrower than a byte lie lowest bits first.
std::uint64_t load_bits(std::span<const std::byte> bytes, std::int64_t index, int width) {
  if (width >= 8) {
    std::uint64_t out = 0;
    std::memcpy(&out, bytes.data() + index * (width / 8), static_cast<std::size_t>(width / 8));
    return out;
  }
  const std::int64_t bit = index * width;
  return (std::to_integer<std::uint64_t>(bytes[static_cast<std::size_t>(bit / 8)]) >> (bit % 8)) &
         ((1ULL << width) - 1);
}

void store_bits(std::span<std::byte> bytes, std::int64_t index, int width, std::uint64_t pattern) {
  if (width >= 8) {
    std::memcpy(bytes.data() + index * (width / 8), &pattern, static_cast<std::size_t>(width / 8));
    return;
  }
  const std::int64_t bit = index * width;
  bytes[static_cast<std::size_t>(bit / 8)] |=
      static_cast<std::byte>((pattern & ((1ULL << width) - 1)) << (bit % 8));
}

}  // namespace

std::uint64_t encode_real(ir::DType dtype, double value) {
  if (dtype == ir::DType::kF64) return std::bit_cast<std::uint64_t>(value);
  if (dtype == ir::DType::kF32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return encode_small(format_of(dtype), value);
}

double decode_real(ir::DType dtype, std::uint64_t pattern) {
  if (dtype == ir::DType::kF64) return std::bit_cast<double>(pattern);
  if (dtype == ir::DType::kF32) return std::bit_cast<float>(static_cast<std::uint32_t>(pattern));
  return decode_small(format_of(dtype), pattern);
}

std::int64_t to_integer(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return std::numeric_limits<std::int64_t>::max();
  if (value < -0x1p63) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(value);
}

double round_to(ir::DType dtype, double value) {
  if (dtype == ir::DType::kF64) return value;
  if (dtype == ir::DType::kF32) return static_cast<float>(value);
  return decode_real(dtype, encode_real(dtype, value));
}

Array::Array(const ir::TensorType& of) : type{of.dtype, of.shape, {}} {
  const auto count = static_cast<std::size_t>(elements());
  if (is_real()) {
    reals.resize(count);
  } else {
    integers.resize(count);
  }
}

Array Array::of_reals(const ir::Shape& shape, std::vector<double> values, ir::DType dtype) {
  Array out;
  out.type = {dtype, shape, {}};
  PLIMSOLL_CHECK(static_cast<std::int64_t>(values.size()) == out.elements());
  if (out.is_real()) {
    out.reals = std::move(values);
  } else {
    // Tables of numbers for a tensor that turns out to hold integers: what they mean there is the
    // operators' to say.
    for (const double value : values) out.integers.push_back(to_integer(value));
  }
  out.round();
  return out;
}

Array Array::of_integers(const ir::Shape& shape, std::vector<std::int64_t> values,
                         ir::DType dtype) {
  Array out;
  out.type = {dtype, shape, {}};
  out.integers = std::move(values);
  PLIMSOLL_CHECK(static_cast<std::int64_t>(out.integers.size()) == out.elements());
  out.round();
  return out;
}

void Array::set_number(std::int64_t index, double value) {
  if (is_real()) {
    reals[static_cast<std::size_t>(index)] = value;
  } else {
    integers[static_cast<std::size_t>(index)] = to_integer(value);
  }
}

void Array::round() {
  if (type.dtype == ir::DType::kF64) return;
  for (double& value : reals) value = round_to(type.dtype, value);
  for (std::int64_t& value : integers) value = wrap(type.dtype, value);
}

Result<Array> Array::from_bytes(const ir::TensorType& of, std::span<const std::byte> bytes) {
  const ir::TensorType plain{of.dtype, of.shape, {}};
  if (static_cast<std::int64_t>(bytes.size()) != ir::bytes_of(plain).value) {
    return bad_input("{} needs {} bytes, has {}", ir::to_string(plain), ir::bytes_of(plain),
                     bytes.size());
  }
  Array out(plain);
  const int width = ir::bits(of.dtype);
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    const std::uint64_t pattern = load_bits(bytes, i, width);
    if (out.is_real()) {
      out.reals[static_cast<std::size_t>(i)] = decode_real(of.dtype, pattern);
    } else {
      out.integers[static_cast<std::size_t>(i)] =
          wrap(of.dtype, static_cast<std::int64_t>(pattern));
    }
  }
  return out;
}

std::vector<std::byte> Array::to_bytes() const {
  std::vector<std::byte> out(static_cast<std::size_t>(ir::bytes_of(type).value));
  const int width = ir::bits(type.dtype);
  for (std::int64_t i = 0; i < elements(); ++i) {
    const std::uint64_t pattern =
        is_real() ? encode_real(type.dtype, reals[static_cast<std::size_t>(i)])
                  : static_cast<std::uint64_t>(integers[static_cast<std::size_t>(i)]);
    store_bits(out, i, width, pattern);
  }
  return out;
}

}  // namespace plimsoll::ops
