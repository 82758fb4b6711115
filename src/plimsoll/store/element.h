// What a weight file's elements are: the types of safetensors, which has the most of all formats.
//
// More than ir::DType knows: formats of hardware that no kernel here computes with (6 bits, E8M0)
// pass from file to file untouched. The order is the reference's, by which its writer sorts
// tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "plimsoll/ir/tensor_type.h"

namespace plimsoll::store {

enum class Element : std::uint8_t {
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
};
inline constexpr int kElementCount = static_cast<int>(Element::kU64) + 1;

std::string_view name(Element element);  // as safetensors spells it: "F32"
int bits(Element element);
std::optional<Element> parse_element(std::string_view name);
std::optional<ir::DType> dtype_of(Element element);
std::optional<Element> element_of(ir::DType dtype);

// The bytes of a tensor; nothing where a product overflows 64 bits or a byte is not full.
std::optional<std::uint64_t> bytes_of(Element element, std::span<const std::uint64_t> dims);
// As a type of ours, or why there is none.
Result<ir::TensorType> tensor_type(Element element, std::span<const std::uint64_t> dims);
// "F32[3,4]"
std::string to_string(Element element, std::span<const std::uint64_t> dims);

}  // namespace plimsoll::store
