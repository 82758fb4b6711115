// A tensor on the host, as the reference evaluation sees it: plain numbers, row-major.
//
// Floats of every width are held as doubles and integers, bools and bits as int64, so one
// evaluation serves all dtypes: it computes in the widest form and `round()` narrows the result to
// what the dtype can hold. That makes the reference slow and obviously right; constant folding,
// gradient checks and the differential tests of the kernels are its users.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/tensor_type.h"

namespace plimsoll::ops {

struct Array {
  ir::TensorType type;                 // layout is always row-major
  std::vector<double> reals;           // when the dtype is a float
  std::vector<std::int64_t> integers;  // otherwise

  Array() = default;
  // All zero.
  explicit Array(const ir::TensorType& type);

  static Array of_reals(const ir::Shape& shape, std::vector<double> values,
                        ir::DType dtype = ir::DType::kF64);
  static Array of_integers(const ir::Shape& shape, std::vector<std::int64_t> values,
                           ir::DType dtype = ir::DType::kI64);
  // Reads elements packed as the executor and files hold them; bytes must be exactly the type's.
  static Result<Array> from_bytes(const ir::TensorType& type, std::span<const std::byte> bytes);
  std::vector<std::byte> to_bytes() const;

  bool is_real() const { return ir::is_float(type.dtype); }
  std::int64_t elements() const { return type.shape.elements(); }
  // Any element as a double, whatever the dtype.
  double number(std::int64_t index) const {
    return is_real() ? reals[static_cast<std::size_t>(index)]
                     : static_cast<double>(integers[static_cast<std::size_t>(index)]);
  }
  // An integer array takes the nearest int64 towards zero (NaN gives 0).
  void set_number(std::int64_t index, double value);
  // One element of an array of the same number class (real or integer).
  void copy_element(std::int64_t index, const Array& from, std::int64_t at) {
    if (is_real()) {
      reals[static_cast<std::size_t>(index)] = from.reals[static_cast<std::size_t>(at)];
    } else {
      integers[static_cast<std::size_t>(index)] = from.integers[static_cast<std::size_t>(at)];
    }
  }
  // Narrows every element to what the dtype can hold (round to nearest even; integers wrap).
  void round();

  bool operator==(const Array&) const = default;
};

// Towards zero, saturating at the ends of the range; NaN gives 0.
std::int64_t to_integer(double value);

// The nearest number the dtype can hold, as a double. Out of range becomes infinity (for fp8e4m3,
// which has none, the NaN it reserves).
double round_to(ir::DType dtype, double value);

// fp16, bf16, fp32 and fp8 bit patterns.
std::uint64_t encode_real(ir::DType dtype, double value);
double decode_real(ir::DType dtype, std::uint64_t pattern);

}  // namespace plimsoll::ops
